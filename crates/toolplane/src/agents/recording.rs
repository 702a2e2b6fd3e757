use std::{path::Path, sync::Arc};

use tool_agent::{RecordLayer, RecordingError, Replay, ReplayExecutor, ReplayLayer};

use crate::{Builder, Place};

impl Builder {
    /// Records the calls of tools as files in a directory, without secrets: see [`RecordLayer`].
    ///
    /// # Errors
    /// If there is a recording already, or the directory cannot be written.
    pub fn record(self, folder: &Path) -> Result<Self, RecordingError> {
        Ok(self.layer(Place::Call, RecordLayer::begin(folder)?))
    }

    /// Answers the calls of tools from a recording: nothing is sent, and servers and endpoints of the configuration, which is set
    /// before, are not started. Their tools are offered as they were recorded. A reload of a configuration brings servers back.
    pub fn replay(mut self, replay: &Arc<Replay>) -> Self {
        self.configuration.servers.clear();
        self.configuration.endpoints.clear();
        let known = self.configuration.tools.iter().chain(&self.extensions.tools);
        let known: Vec<_> = known.map(|tool| tool.name.clone()).collect();
        for tool in replay.tools() {
            if !known.contains(&tool.name) {
                self = self.tool(tool);
            }
        }
        self.executor(Arc::new(ReplayExecutor))
            .layer(Place::Call, ReplayLayer::new(replay.clone()))
    }
}
