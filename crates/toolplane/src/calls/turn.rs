use std::{
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use raw_json::RawJson;
use tool_core::{ErrorKind, Outcome, ToolError};
use tool_policy::{QuotaLayer, ToolChoice};
use uuid::Uuid;

use crate::{CallRequest, Toolplane};

/// Turn of a conversation: the calls of one answer of a model. For programs that run the loop of an agent; the
/// policy's quotas for turns and conversations use it.
///
/// # Examples
/// ```
/// # use toolplane::{CallRequest, Toolplane, policy::ToolChoice};
/// # async fn example(plane: &Toolplane) -> Result<(), toolplane::core::ToolError> {
/// let turn = plane.turn("conversation 7");
/// if turn.tool_choice() != ToolChoice::None {
///     turn.call(CallRequest::new("weather")).await?;
/// }
/// turn.finish()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Turn {
    plane: Toolplane,
    conversation: RawJson,
    id: RawJson,
    has_called: Arc<AtomicBool>,
}

impl Toolplane {
    /// Starts a turn of this conversation. Conversations belong to a caller: those of other callers with equal names
    /// are separate.
    #[must_use]
    pub fn turn(&self, conversation: &str) -> Turn {
        Turn {
            plane: self.clone(),
            conversation: RawJson::from(conversation),
            id: RawJson::from(Uuid::new_v4().simple().to_string().as_str()),
            has_called: Arc::default(),
        }
    }

    /// Returns whether a model may, must or must not call tools, for its provider.
    #[must_use]
    pub fn tool_choice(&self) -> ToolChoice {
        self.0.rules.load().tool_choice
    }
}

impl Turn {
    /// See [`Toolplane::tool_choice`].
    #[must_use]
    pub fn tool_choice(&self) -> ToolChoice {
        self.plane.tool_choice()
    }

    /// Returns the request as part of this turn.
    pub fn request(&self, request: CallRequest) -> CallRequest {
        let ours = [
            (QuotaLayer::CONVERSATION, self.conversation.clone()),
            (QuotaLayer::TURN, self.id.clone()),
        ];
        request.more_meta(&ours)
    }

    /// Makes a call as part of this turn.
    ///
    /// # Cancellation
    /// Dropping the future cancels the call: see [`Toolplane::call`].
    ///
    /// # Errors
    /// The errors of [`Toolplane::call`]; [`ErrorKind::Denied`] if the call exceeds a quota of the turn or the
    /// conversation.
    pub async fn call(&self, request: CallRequest) -> Result<Outcome, ToolError> {
        let result = self.plane.call(self.request(request)).await;
        self.note(&result);
        result
    }

    /// Makes the calls of this turn concurrently: see [`Toolplane::call_many`].
    ///
    /// # Cancellation
    /// Dropping the future cancels the running calls and makes no others.
    pub async fn call_many(
        &self,
        requests: impl IntoIterator<Item = CallRequest>,
        window: NonZeroUsize,
    ) -> Vec<Result<Outcome, ToolError>> {
        let requests: Vec<_> = requests
            .into_iter()
            .map(|request| self.request(request))
            .collect();
        let results = self.plane.call_many(requests, window).await;
        for result in &results {
            self.note(result);
        }
        results
    }

    /// Counts a call, unless a quota refused it.
    fn note(&self, result: &Result<Outcome, ToolError>) {
        let is_refused = result
            .as_ref()
            .is_err_and(|error| matches!(error.kind(), ErrorKind::Denied | ErrorKind::NotFound));
        if !is_refused {
            self.has_called.store(true, Ordering::Relaxed);
        }
    }

    /// Ends the turn.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] if the policy requires a tool call in each turn and there was none: ask the model again.
    pub fn finish(self) -> Result<(), ToolError> {
        if self.tool_choice() == ToolChoice::Required && !self.has_called.load(Ordering::Relaxed) {
            let message = "the policy requires a call of a tool in each turn, and there was none";
            return Err(ToolError::new(ErrorKind::Denied, message));
        }
        Ok(())
    }
}
