use std::sync::Arc;

use tool_core::{BoxFuture, ErrorKind, Outcome, ToolError};

use super::{
    AgentLimits, Conversation, Model, ModelError, ModelRequest,
    state::{PendingCalls, call_key},
};
use crate::{CallOutput, ModelCall, ModelToolChoice, StopReason, ToolDefinitions};

/// Tools that an agent calls.
pub trait AgentTools: Send + Sync {
    /// Makes the calls of one turn of the model, concurrently. Returns their results in the order of the calls. A call that waits for
    /// a decision is made again, unchanged, once the conversation goes on.
    ///
    /// # Cancellation
    /// Dropping the future cancels the calls that run, and makes no others.
    fn call_turn<'a>(&'a self, calls: &'a [ModelCall]) -> BoxFuture<'a, Vec<Result<Outcome, ToolError>>>;
}

/// Observer of a conversation.
pub trait AgentWatch: Send + Sync {
    /// The model says something: a piece of its text.
    fn says(&self, text: &str) {
        let _ = text;
    }

    /// The model calls a tool.
    fn calls(&self, call: &ModelCall) {
        let _ = call;
    }

    /// A call has ended.
    fn ends(&self, call: &ModelCall, output: &CallOutput) {
        let _ = (call, output);
    }
}

impl AgentWatch for () {}

/// An agent: a model that calls tools until it has an answer.
///
/// # Examples
/// ```
/// use tool_agent::{
///     Agent, AgentEnd, AgentTools, Conversation, DefinitionOptions, Model as _, ModelCall, ProviderFormat, ScriptedModel,
///     ToolDefinitions, ToolSpec, RawJson, serde_json::json,
///     tool_core::{BoxFuture, Outcome, Reply, ToolError},
/// };
///
/// struct Weather;
///
/// impl AgentTools for Weather {
///     fn call_turn<'a>(&'a self, calls: &'a [ModelCall]) -> BoxFuture<'a, Vec<Result<Outcome, ToolError>>> {
///         let clear = || Ok(Reply::from(json!({"sky": "clear"})).into());
///         Box::pin(async move { calls.iter().map(|_| clear()).collect() })
///     }
/// }
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let script = json!([
///     {"calls": [{"tool": "weather", "arguments": {"city": "Oslo"}}]},
///     {"expect": ["clear"], "text": "Take sunglasses."},
/// ]);
/// let model = ScriptedModel::from_json(ProviderFormat::Anthropic, &script)?;
/// let tools = [ToolSpec::new("weather", "The weather.", RawJson::from(json!({"type": "object"})))];
/// let definitions = ToolDefinitions::new(model.format(), &tools, DefinitionOptions::default());
/// let mut conversation = Conversation::new(model.format());
/// conversation.user("What do I need in Oslo?");
/// let agent = Agent::new(&model, &Weather, &definitions);
/// let end = agent.run(&mut conversation, &()).await?;
/// assert!(matches!(end, AgentEnd::Answered { text, .. } if text == "Take sunglasses."));
/// # Ok(())
/// # }
/// ```
pub struct Agent<'a> {
    model: &'a dyn Model,
    tools: &'a dyn AgentTools,
    definitions: &'a ToolDefinitions,
    limits: AgentLimits,
    choice: ModelToolChoice,
}

/// End of a run.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum AgentEnd {
    /// The model is done.
    Answered {
        /// Its answer.
        text: String,
        /// Reason for the end: it may have been cut off, or have refused.
        stop: StopReason,
    },
    /// Calls wait for decisions or input. The conversation goes on where it is, once there are any: also in another process, by
    /// [`Conversation::to_json`].
    Waiting(Vec<WaitingCall>),
}

/// A call that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitingCall {
    /// Tool.
    pub tool: Arc<str>,
    /// Handle of the decision, if it waits for one.
    pub handle: Option<Arc<str>>,
    /// Reason.
    pub reason: String,
}

/// Error of a run. The conversation is as it was before the turn that failed, and can go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The model does not answer.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The model still calls tools in the last round.
    #[error("the model has no answer after {0} rounds")]
    TooManyRounds(u32),
    /// The model calls no tool, though it must.
    #[error("the model calls no tool, and must call one")]
    NoCall,
    /// The model and the conversation have different formats.
    #[error("the conversation is in the format `{conversation}`, and the model has `{model}`")]
    OtherFormat {
        /// Format of the conversation.
        conversation: &'static str,
        /// Format of the model.
        model: &'static str,
    },
}

/// Instruction for a model that must call a tool and did not.
const CALL_ONE: &str = "Call one of the tools before you answer.";

impl<'a> Agent<'a> {
    /// Creates an agent with default limits. `definitions` are those of its tools, in the format of the model.
    #[must_use]
    pub fn new(model: &'a dyn Model, tools: &'a dyn AgentTools, definitions: &'a ToolDefinitions) -> Self {
        Self {
            model,
            tools,
            definitions,
            limits: AgentLimits::default(),
            choice: ModelToolChoice::Auto,
        }
    }

    /// Sets the limits.
    #[must_use]
    pub fn with_limits(mut self, limits: AgentLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the rule for whether the model calls tools. One that requires calls holds until the model has made one.
    #[must_use]
    pub fn with_choice(mut self, choice: ModelToolChoice) -> Self {
        self.choice = choice;
        self
    }

    /// Lets the model take turns until it calls no tool, or until a call waits.
    ///
    /// # Cancellation
    /// Dropping the future cancels the request or the calls that run. Whether these had their effect is not known, and the model is
    /// told so when the conversation goes on: they are not made again.
    ///
    /// # Errors
    /// See [`AgentError`]. What tools report is no error: the model gets it.
    pub async fn run(
        &self,
        conversation: &mut Conversation,
        watch: &dyn AgentWatch,
    ) -> Result<AgentEnd, AgentError> {
        if conversation.format() != self.model.format() {
            return Err(AgentError::OtherFormat {
                conversation: conversation.format().as_str(),
                model: self.model.format().as_str(),
            });
        }
        loop {
            let waiting = self.finish_calls(conversation, watch).await;
            if !waiting.is_empty() {
                return Ok(AgentEnd::Waiting(waiting));
            }
            if conversation.n_rounds >= self.limits.max_rounds {
                return Err(AgentError::TooManyRounds(self.limits.max_rounds));
            }
            let is_last = conversation.n_rounds + 1 == self.limits.max_rounds;
            let must_call = conversation.n_calls == 0
                && matches!(self.choice, ModelToolChoice::Required | ModelToolChoice::Tool(_));
            let choice = match (&self.choice, is_last) {
                (_, true) => ModelToolChoice::None,
                (choice, false) if must_call => choice.clone(),
                (ModelToolChoice::None, false) => ModelToolChoice::None,
                _ => ModelToolChoice::Auto,
            };
            let says = |text: &str| watch.says(text);
            let request = ModelRequest {
                system: conversation.system.as_deref(),
                messages: &conversation.messages,
                definitions: self.definitions,
                choice: &choice,
                on_text: &says,
            };
            let turn = self.model.turn(request).await?;
            conversation.n_rounds += 1;
            conversation.messages.extend(turn.messages);
            if !turn.calls.is_empty() {
                for call in &turn.calls {
                    watch.calls(call);
                }
                conversation.pending = Some(PendingCalls::new(turn.calls));
                continue;
            }
            match (must_call, is_last) {
                (false, _) => {
                    return Ok(AgentEnd::Answered {
                        text: turn.text,
                        stop: turn.stop,
                    });
                }
                (true, true) => return Err(AgentError::NoCall),
                (true, false) => conversation.instruct(CALL_ONE),
            }
        }
    }

    /// Makes the calls of the last turn that have no result yet, and gives their results to the model. Returns those that wait.
    async fn finish_calls(
        &self,
        conversation: &mut Conversation,
        watch: &dyn AgentWatch,
    ) -> Vec<WaitingCall> {
        let Some(mut pending) = conversation.pending.clone() else {
            return Vec::new();
        };
        if !pending.is_counted {
            self.count(conversation, &mut pending, watch);
        }
        if pending.is_running {
            for (call, output) in pending.calls.iter().zip(&mut pending.outputs) {
                let message = "the call was cancelled while it ran; whether it had its effect is not known";
                let unknown =
                    || CallOutput::of_error(call, &ToolError::new(ErrorKind::OutcomeUnknown, message));
                output.get_or_insert_with(unknown);
            }
        }
        let open: Vec<usize> = (0..pending.calls.len())
            .filter(|index| pending.outputs[*index].is_none())
            .collect();
        let calls: Vec<_> = open.iter().map(|index| pending.calls[*index].clone()).collect();
        // What is cancelled from here on has been counted, and may have run.
        pending.is_running = true;
        conversation.pending = Some(pending.clone());
        let results = match calls.is_empty() {
            true => Vec::new(),
            false => self.tools.call_turn(&calls).await,
        };
        pending.is_running = false;
        let mut waiting = Vec::new();
        let mut results = results.into_iter();
        for (index, call) in open.into_iter().zip(&calls) {
            // Each call has a result in the history, or the provider refuses the next request.
            let result = results.next().unwrap_or_else(|| {
                let message = "the call has no result; whether it had its effect is not known";
                Err(ToolError::new(ErrorKind::OutcomeUnknown, message))
            });
            let tool = call.tool.clone().unwrap_or_else(|| call.name.as_str().into());
            let output = match result {
                Ok(Outcome::Reply(reply)) => CallOutput::of_reply(call, &reply),
                Ok(Outcome::Pending(pending)) => {
                    waiting.push(WaitingCall {
                        tool,
                        handle: Some(pending.handle.clone()),
                        reason: pending.reason.clone(),
                    });
                    continue;
                }
                Ok(other) => match other.into_reply() {
                    Ok(reply) => CallOutput::of_reply(call, &reply),
                    // A model cannot answer questions for people, nor wait for a task.
                    Err(error) => CallOutput::of_error(call, &error),
                },
                Err(error) => CallOutput::of_error(call, &error),
            };
            let output = match self.limits.max_result_tokens {
                Some(most) => output.cut(most.saturating_mul(AgentLimits::BYTES_PER_TOKEN)),
                None => output,
            };
            watch.ends(call, &output);
            pending.outputs[index] = Some(output);
        }
        if waiting.is_empty() {
            let outputs: Vec<_> = pending.outputs.into_iter().flatten().collect();
            let made = CallOutput::write(conversation.format(), &outputs);
            conversation.messages.extend(made.messages);
            conversation.pending = None;
        } else {
            conversation.pending = Some(pending);
        }
        waiting
    }

    /// Counts the calls of a turn, and refuses those that are too many or cannot be made.
    fn count(&self, conversation: &mut Conversation, pending: &mut PendingCalls, watch: &dyn AgentWatch) {
        pending.is_counted = true;
        let mut n_made = 0;
        for (call, output) in pending.calls.iter().zip(&mut pending.outputs) {
            let refused = |kind, message: String| Some(ToolError::new(kind, message));
            let refusal = if call.tool.is_none() {
                refused(ErrorKind::NotFound, "there is no tool of this name".to_owned())
            } else if !call.has_valid_arguments() {
                let message = "the arguments are no JSON object; they may have been cut off";
                refused(ErrorKind::InvalidArguments, message.to_owned())
            } else if n_made == self.limits.max_calls_per_turn {
                refused(ErrorKind::Denied, format!("more than {n_made} calls in one turn"))
            } else if conversation.n_calls == self.limits.max_calls {
                let most = self.limits.max_calls;
                refused(
                    ErrorKind::Denied,
                    format!("more than {most} calls in one conversation"),
                )
            } else {
                let seen = conversation.seen.entry(call_key(call)).or_default();
                *seen += 1;
                let most = self.limits.max_identical_calls;
                let is_repeated = *seen > most;
                is_repeated
                    .then(|| {
                        refused(
                            ErrorKind::Denied,
                            format!("the same call was made {most} times already"),
                        )
                    })
                    .flatten()
            };
            match refusal {
                Some(error) => {
                    let refused = CallOutput::of_error(call, &error);
                    watch.ends(call, &refused);
                    *output = Some(refused);
                }
                None => {
                    n_made += 1;
                    conversation.n_calls += 1;
                }
            }
        }
    }
}

impl std::fmt::Debug for Agent<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent")
            .field("limits", &self.limits)
            .field("choice", &self.choice)
            .finish_non_exhaustive()
    }
}
