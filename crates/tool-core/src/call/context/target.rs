use std::{borrow::Cow, sync::Arc};

use crate::{Task, TaskRequest, Tool};

/// Target of a call.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Target {
    /// Calls a tool.
    Tool(Arc<Tool>),
    /// Renders a prompt with the arguments.
    Prompt(Arc<Tool>),
    /// Reads a resource.
    Resource {
        /// The resource, or the template that matches its URI.
        resource: Arc<Tool>,
        /// URI of the resource.
        uri: Arc<str>,
    },
    /// Completes an argument of a prompt or template. The arguments of the call are the protocol's members next to
    /// the reference: `argument` and optionally `context`.
    Completion(Arc<Tool>),
    /// Sends a request about a task that a call has become. The call has no arguments; settings, schema and state are
    /// those of the tool.
    Task {
        /// Tool that was called.
        tool: Arc<Tool>,
        /// Task.
        task: Task,
        /// Request about the task.
        request: TaskRequest,
    },
}

impl Target {
    /// Returns the tool, or the entry that represents a prompt or resource. Layers use its settings, schema and
    /// state.
    #[must_use]
    pub fn tool(&self) -> &Arc<Tool> {
        match self {
            Self::Tool(tool) | Self::Prompt(tool) | Self::Completion(tool) => tool,
            Self::Resource { resource, .. } => resource,
            Self::Task { tool, .. } => tool,
        }
    }

    /// Returns the name for policy rules and logs. A resource that a template matches has a name of its own.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        let name = self.tool().name();
        if let Self::Resource { resource, uri } = self
            && let Some(known) = resource.descriptor().uri.as_ref().filter(|known| known != &uri)
        {
            let prefix = name.strip_suffix(&**known).unwrap_or_default();
            return format!("{prefix}{uri}").into();
        }
        Cow::Borrowed(name)
    }
}
