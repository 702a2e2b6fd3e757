use std::{future, sync::Arc};

use tool_core::{BoxFuture, Catalogue, Descriptor, Feature, Source, SourceState, SourceStatus};

/// A source whose tools are known from the start and never change, such as a configuration file.
#[derive(Debug)]
pub struct FixedSource {
    name: String,
    catalogue: Arc<Catalogue>,
}

impl FixedSource {
    /// Makes a source with these tools.
    #[must_use]
    pub fn new(name: impl Into<String>, tools: Vec<Arc<Descriptor>>) -> Self {
        let catalogue = Catalogue::new(1, tools);
        Self {
            name: name.into(),
            catalogue: Arc::new(catalogue),
        }
    }
}

impl Source for FixedSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn snapshot(&self) -> Arc<Catalogue> {
        self.catalogue.clone()
    }

    fn load(&self) -> BoxFuture<'_, ()> {
        Box::pin(future::ready(()))
    }

    fn changed(&self, seen: u64) -> BoxFuture<'_, ()> {
        if seen == self.catalogue.revision {
            Box::pin(future::pending())
        } else {
            Box::pin(future::ready(()))
        }
    }

    fn may_hold(&self, _feature: Feature, _name: &str) -> bool {
        false
    }

    fn status(&self) -> SourceStatus {
        let mut status = SourceStatus::new(SourceState::Ready);
        status.n_tools = self.catalogue.tools.len();
        status
    }
}
