use std::{fmt, num::NonZeroUsize, sync::Arc};

use tool_agent::{
    AgentTools, DefinitionOptions, ModelCall, ModelToolChoice, ProviderFormat, ToolDefinitions, ToolSpec,
};
use tool_core::{Arguments, BoxFuture, Caller, ErrorKind, Outcome, ToolError};
use tool_policy::ToolChoice;

use crate::{CallRequest, Toolplane};

/// Tools of a toolplane for one conversation of an agent. The calls of each turn are a [`Turn`](crate::Turn), so that the quotas of
/// turns and conversations apply.
#[derive(Clone)]
pub struct ConversationTools {
    plane: Toolplane,
    conversation: String,
    caller: Arc<Caller>,
    window: NonZeroUsize,
}

impl ConversationTools {
    /// Sets the maximum number of calls of a turn that are made at the same time. Default:
    /// [`Toolplane::DEFAULT_CONCURRENCY`].
    #[must_use]
    pub fn with_window(mut self, window: NonZeroUsize) -> Self {
        self.window = window;
        self
    }

    fn request(&self, call: &ModelCall) -> Result<CallRequest, ToolError> {
        let tool = call.tool.as_deref().ok_or_else(|| {
            let message = format!("there is no tool `{}`", call.name);
            ToolError::new(ErrorKind::NotFound, message)
        })?;
        let arguments = Arguments::from_raw(call.arguments.clone())?;
        Ok(CallRequest::new(tool)
            .arguments(arguments)
            .caller(self.caller.clone()))
    }

    async fn call(&self, calls: &[ModelCall]) -> Vec<Result<Outcome, ToolError>> {
        let turn = self.plane.turn(&self.conversation);
        let mut results: Vec<_> = calls.iter().map(|call| self.request(call).map(Some)).collect();
        let requests = results
            .iter_mut()
            .filter_map(|request| request.as_mut().ok()?.take());
        let made = turn.call_many(requests.collect::<Vec<_>>(), self.window).await;
        let mut made = made.into_iter();
        let results = results.into_iter().map(|request| match request {
            Err(error) => Err(error),
            // There is a result for each request.
            Ok(_) => made
                .next()
                .unwrap_or_else(|| Err(ToolError::new(ErrorKind::Internal, "the call has no result"))),
        });
        results.collect()
    }
}

impl AgentTools for ConversationTools {
    fn call_turn<'a>(&'a self, calls: &'a [ModelCall]) -> BoxFuture<'a, Vec<Result<Outcome, ToolError>>> {
        Box::pin(self.call(calls))
    }
}

impl Toolplane {
    /// Returns the tools of this caller for a conversation of an [`Agent`](tool_agent::Agent). Conversations belong to a caller:
    /// those of other callers with equal names are separate.
    #[must_use]
    pub fn conversation_tools(&self, conversation: &str, caller: &Arc<Caller>) -> ConversationTools {
        ConversationTools {
            plane: self.clone(),
            conversation: conversation.to_owned(),
            caller: caller.clone(),
            window: Self::DEFAULT_CONCURRENCY,
        }
    }

    /// Returns the definitions of the tools of this caller in the format of a provider. Starts servers that are not running, as
    /// [`Toolplane::view`] does.
    ///
    /// # Cancellation
    /// Dropping the future ends the wait. Servers that are starting continue to start.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn tool_definitions(
        &self,
        format: ProviderFormat,
        caller: &Caller,
        options: DefinitionOptions,
    ) -> ToolDefinitions {
        let view = self.view(caller).await;
        let specs: Vec<_> = view.tools().iter().map(|tool| ToolSpec::from(&**tool)).collect();
        ToolDefinitions::new(format, &specs, options)
    }

    /// Returns the policy's rule for whether a model calls tools.
    #[must_use]
    pub fn model_tool_choice(&self) -> ModelToolChoice {
        match self.tool_choice() {
            ToolChoice::None => ModelToolChoice::None,
            ToolChoice::Required => ModelToolChoice::Required,
            _ => ModelToolChoice::Auto,
        }
    }
}

impl fmt::Debug for ConversationTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConversationTools")
            .field("conversation", &self.conversation)
            .finish_non_exhaustive()
    }
}
