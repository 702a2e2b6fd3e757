use std::{sync::Arc, time::Duration};

use raw_json::RawJson;
use tool_core::{Arguments, Caller, Progress, ToolError, TraceContext};

/// A call to be made.
#[derive(Clone)]
#[must_use]
pub struct CallRequest {
    pub(crate) tool: Arc<str>,
    pub(crate) arguments: Arc<Arguments>,
    pub(crate) caller: Option<Arc<Caller>>,
    pub(crate) deadline: Option<Duration>,
    pub(crate) progress: Option<Arc<dyn Progress>>,
    pub(crate) trace: Option<TraceContext>,
}

impl CallRequest {
    /// A call of this tool without arguments, by the local caller.
    pub fn new(tool: impl Into<Arc<str>>) -> Self {
        Self {
            tool: tool.into(),
            arguments: Arc::new(Arguments::none()),
            caller: None,
            deadline: None,
            progress: None,
            trace: None,
        }
    }

    /// Calls with these arguments.
    pub fn arguments(mut self, arguments: Arguments) -> Self {
        self.arguments = Arc::new(arguments);
        self
    }

    /// Calls with these arguments, given as the text of a JSON object.
    ///
    /// # Errors
    /// When the text is no JSON object or has a duplicate key.
    pub fn json(self, text: impl Into<String>) -> Result<Self, ToolError> {
        Ok(self.arguments(Arguments::parse(text.into())?))
    }

    /// Calls with these arguments, cut out of a message.
    ///
    /// # Errors
    /// As [`CallRequest::json`].
    pub fn raw(self, raw: RawJson) -> Result<Self, ToolError> {
        Ok(self.arguments(Arguments::from_raw(raw)?))
    }

    /// Calls with these arguments, cut out of a message that was checked as a whole: see
    /// [`Arguments::from_checked`].
    ///
    /// # Errors
    /// When the value is no object.
    pub fn checked(self, raw: RawJson) -> Result<Self, ToolError> {
        Ok(self.arguments(Arguments::from_checked(raw)?))
    }

    /// Calls on this caller's behalf.
    pub fn caller(mut self, caller: Arc<Caller>) -> Self {
        self.caller = Some(caller);
        self
    }

    /// Gives up after this time, if the tool's own limit does not come first.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Passes the tool's progress on to this.
    pub fn progress(mut self, progress: Arc<dyn Progress>) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Makes the call a part of this trace.
    pub fn trace(mut self, trace: TraceContext) -> Self {
        self.trace = Some(trace);
        self
    }
}

impl std::fmt::Debug for CallRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallRequest")
            .field("tool", &self.tool)
            .field("caller", &self.caller)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}
