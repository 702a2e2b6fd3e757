use std::{borrow::Cow, sync::Arc};

use crate::{Task, TaskRequest, Tool};

/// What a call is addressed to.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Target {
    /// A tool, to be called.
    Tool(Arc<Tool>),
    /// A prompt, to be rendered with the arguments.
    Prompt(Arc<Tool>),
    /// A resource, to be read.
    Resource {
        /// The resource itself, or the template that it belongs to.
        resource: Arc<Tool>,
        /// Its own URI.
        uri: Arc<str>,
    },
    /// A prompt or template of which an argument is to be completed. The call's arguments are what the protocol says
    /// beside the reference: `argument` and perhaps `context`.
    Completion(Arc<Tool>),
    /// A task that a call of a tool became. The call has no arguments; everything else goes by the tool.
    Task {
        /// The tool that was called.
        tool: Arc<Tool>,
        /// The task.
        task: Task,
        /// What is asked about it.
        request: TaskRequest,
    },
}

impl Target {
    /// The tool, or what stands for one: layers go by its settings, schema and state.
    #[must_use]
    pub fn tool(&self) -> &Arc<Tool> {
        match self {
            Self::Tool(tool) | Self::Prompt(tool) | Self::Completion(tool) => tool,
            Self::Resource { resource, .. } => resource,
            Self::Task { tool, .. } => tool,
        }
    }

    /// The name that policy rules and logs know it by: of a resource that a template stands for, its own.
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
