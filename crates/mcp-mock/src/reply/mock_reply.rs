use std::{sync::Arc, time::Duration};

use mcp_wire::{LogLevel, RpcError, method};
use raw_json::RawJson;

use crate::{Misbehavior, MockPrompt, MockResource, MockTool};

/// The answer to one request: steps before it, its outcome, and its misbehaviors.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use mcp_mock::{Misbehavior, MockReply};
///
/// let slow = MockReply::text("at last").delay(Duration::from_secs(5)).progress(1, 2);
/// let greeting = MockReply::template("Hello, {{ name }}!");
/// let broken = MockReply::usual().misbehave(Misbehavior::Cut(None));
/// ```
#[derive(Debug, Clone, Default)]
pub struct MockReply {
    pub(crate) steps: Vec<Step>,
    pub(crate) outcome: ReplyOutcome,
    pub(crate) misbehaviors: Vec<Misbehavior>,
}

/// Outcome of a request.
#[derive(Debug, Clone, Default)]
pub(crate) enum ReplyOutcome {
    /// The answer of a well-behaved server.
    #[default]
    Usual,
    /// A text in the result shape of the method.
    Text(String),
    /// A text with placeholders, in the result shape of the method.
    Template(String),
    /// A tool's structured content.
    Structured(RawJson),
    /// The whole result.
    Result(RawJson),
    /// A tool result with `isError`.
    Failure(String),
    /// A JSON-RPC error.
    Error(RpcError),
    /// No answer.
    Never,
}

/// A step before the answer, in the order in which it was added.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Delay(Duration),
    Progress(RawJson),
    Log(LogLevel, RawJson),
    Notify(String, Option<RawJson>),
    Ask(Question),
    Change(Change),
}

/// A question to the client.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) key: String,
    pub(crate) method: String,
    pub(crate) params: Option<RawJson>,
}

/// A change of the offered features, announced to subscribers.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    AddTool(Arc<MockTool>),
    RemoveTool(String),
    AddPrompt(Arc<MockPrompt>),
    RemovePrompt(String),
    AddResource(Arc<MockResource>),
    RemoveResource(String),
    UpdateResource(String),
}

impl MockReply {
    fn from_outcome(outcome: ReplyOutcome) -> Self {
        Self {
            outcome,
            ..Self::default()
        }
    }

    /// Answers as a well-behaved server: a tool returns its arguments.
    #[must_use]
    pub fn usual() -> Self {
        Self::default()
    }

    /// Answers with a text: the content of a tool's result, the message of a prompt, the content of a resource.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::from_outcome(ReplyOutcome::Text(text.into()))
    }

    /// Answers with a text with placeholders: `{{ city }}` is an argument, `{{ place.city }}` a member of one. `{{
    /// $call }}` is the number of the call, `{{ $answers.KEY.content.city }}` a part of the client's answer to a
    /// question.
    #[must_use]
    pub fn template(text: impl Into<String>) -> Self {
        Self::from_outcome(ReplyOutcome::Template(text.into()))
    }

    /// Answers with a tool's structured content, and its JSON as text.
    #[must_use]
    pub fn structured(content: RawJson) -> Self {
        Self::from_outcome(ReplyOutcome::Structured(content))
    }

    /// Answers with this result, verbatim.
    #[must_use]
    pub fn result(result: RawJson) -> Self {
        Self::from_outcome(ReplyOutcome::Result(result))
    }

    /// Answers with a tool result with `isError`; with an internal error for other methods.
    #[must_use]
    pub fn failure(text: impl Into<String>) -> Self {
        Self::from_outcome(ReplyOutcome::Failure(text.into()))
    }

    /// Answers with a JSON-RPC error.
    #[must_use]
    pub fn error(error: RpcError) -> Self {
        Self::from_outcome(ReplyOutcome::Error(error))
    }

    /// Never answers.
    #[must_use]
    pub fn never() -> Self {
        Self::from_outcome(ReplyOutcome::Never)
    }

    /// Adds a delay.
    #[must_use]
    pub fn delay(self, time: Duration) -> Self {
        self.step(Step::Delay(time))
    }

    /// Adds a progress notification, for clients that asked for it.
    #[must_use]
    pub fn progress(self, progress: u64, total: u64) -> Self {
        let report = [
            ("progress", RawJson::from(progress)),
            ("total", RawJson::from(total)),
        ];
        self.progress_report(RawJson::from_members(&report))
    }

    /// Adds a progress notification: an object with `progress` and optionally `total` and `message`.
    #[must_use]
    pub fn progress_report(self, report: RawJson) -> Self {
        self.step(Step::Progress(report))
    }

    /// Adds a log message, for clients that receive its level.
    #[must_use]
    pub fn log(self, level: LogLevel, data: impl Into<String>) -> Self {
        let data: String = data.into();
        self.log_message(
            level,
            RawJson::from_members(&[("data", RawJson::from(data.as_str()))]),
        )
    }

    /// Adds a log message: an object with `data` and optionally `logger`.
    #[must_use]
    pub fn log_message(self, level: LogLevel, message: RawJson) -> Self {
        self.step(Step::Log(level, message))
    }

    /// Adds a notification to every subscribed client.
    #[must_use]
    pub fn notify(self, method: impl Into<String>, params: Option<RawJson>) -> Self {
        self.step(Step::Notify(method.into(), params))
    }

    /// Adds a question to the client, such as `sampling/createMessage`: during a legacy request, or as `input_required`
    /// to a modern one. Consecutive questions are asked in one round. The answer is stored under `key`.
    #[must_use]
    pub fn ask(self, key: impl Into<String>, method: impl Into<String>, params: Option<RawJson>) -> Self {
        self.step(Step::Ask(Question {
            key: key.into(),
            method: method.into(),
            params,
        }))
    }

    /// Adds an elicitation: a question to the user with a form of this schema.
    #[must_use]
    pub fn elicit(self, key: impl Into<String>, message: &str, schema: &RawJson) -> Self {
        let params = RawJson::from_members(&[
            ("message", RawJson::from(message)),
            ("requestedSchema", schema.clone()),
        ]);
        self.ask(key, method::ELICITATION_CREATE, Some(params))
    }

    /// Adds a tool to the server, or replaces the one of the same name.
    #[must_use]
    pub fn add_tool(self, tool: MockTool) -> Self {
        self.step(Step::Change(Change::AddTool(Arc::new(tool))))
    }

    /// Removes a tool from the server.
    #[must_use]
    pub fn remove_tool(self, name: impl Into<String>) -> Self {
        self.step(Step::Change(Change::RemoveTool(name.into())))
    }

    /// Adds a prompt to the server, or replaces the one of the same name.
    #[must_use]
    pub fn add_prompt(self, prompt: MockPrompt) -> Self {
        self.step(Step::Change(Change::AddPrompt(Arc::new(prompt))))
    }

    /// Removes a prompt from the server.
    #[must_use]
    pub fn remove_prompt(self, name: impl Into<String>) -> Self {
        self.step(Step::Change(Change::RemovePrompt(name.into())))
    }

    /// Adds a resource to the server, or replaces the one of the same URI.
    #[must_use]
    pub fn add_resource(self, resource: MockResource) -> Self {
        self.step(Step::Change(Change::AddResource(Arc::new(resource))))
    }

    /// Adds a template of resources, made by [`MockResource::template`], or replaces the one of the same URI.
    #[must_use]
    pub fn add_resource_template(self, template: MockResource) -> Self {
        self.add_resource(template)
    }

    /// Removes a resource or a template from the server.
    #[must_use]
    pub fn remove_resource(self, uri: impl Into<String>) -> Self {
        self.step(Step::Change(Change::RemoveResource(uri.into())))
    }

    /// Notifies the subscribers of a resource that it has changed.
    #[must_use]
    pub fn update_resource(self, uri: impl Into<String>) -> Self {
        self.step(Step::Change(Change::UpdateResource(uri.into())))
    }

    /// Adds a misbehavior of the answer.
    #[must_use]
    pub fn misbehave(mut self, misbehavior: Misbehavior) -> Self {
        self.misbehaviors.push(misbehavior);
        self
    }

    pub(crate) fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Appends the steps and misbehaviors of `inner`. The outcome is that of `inner` if this reply has the usual one.
    pub(crate) fn over(&self, inner: &Self) -> Self {
        let outcome = match &self.outcome {
            ReplyOutcome::Usual => &inner.outcome,
            own => own,
        };
        Self {
            steps: [&*self.steps, &inner.steps].concat(),
            outcome: outcome.clone(),
            misbehaviors: [&*self.misbehaviors, &inner.misbehaviors].concat(),
        }
    }

    /// Removes all misbehaviors.
    pub(crate) fn behave(&mut self) {
        self.misbehaviors.clear();
        if matches!(self.outcome, ReplyOutcome::Never) {
            self.outcome = ReplyOutcome::Usual;
        }
    }

    /// Returns the sum of the delays.
    pub(crate) fn delays(&self) -> Duration {
        let delays = self.steps.iter().map(|step| match step {
            Step::Delay(time) => *time,
            _ => Duration::ZERO,
        });
        delays.sum()
    }
}
