use std::{sync::Arc, time::Duration};

use mcp_wire::{LogLevel, RpcError, method};
use raw_json::RawJson;
use serde_json::json;

use crate::{Misbehavior, MockPrompt, MockResource, MockTool};

/// How one request is answered: what happens before, what the answer is, and how it misbehaves.
///
/// ```
/// use std::time::Duration;
/// use mcp_mock::{Misbehaviour, Reply};
///
/// let slow = Reply::text("at last").delay(Duration::from_secs(5)).progress(1, 2);
/// let greeting = Reply::template("Hello, {{ name }}!");
/// let broken = Reply::usual().misbehave(Misbehaviour::Cut(None));
/// ```
#[derive(Debug, Clone, Default)]
pub struct MockReply {
    pub(crate) steps: Vec<Step>,
    pub(crate) outcome: Outcome,
    pub(crate) misbehaviours: Vec<Misbehavior>,
}

/// What a request comes to.
#[derive(Debug, Clone, Default)]
pub(crate) enum Outcome {
    /// What a well-behaved server would answer.
    #[default]
    Usual,
    /// A text in the shape that the method wants.
    Text(String),
    /// The same with placeholders.
    Template(String),
    /// A tool's structured content.
    Structured(RawJson),
    /// The whole result.
    Result(RawJson),
    /// A tool that says that it failed.
    Failure(String),
    /// An error of the protocol.
    Error(RpcError),
    /// Nothing, ever.
    Never,
}

/// What happens before an answer, in the order in which it was added.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Delay(Duration),
    Progress(RawJson),
    Log(LogLevel, RawJson),
    Notify(String, Option<RawJson>),
    Ask(Question),
    Change(Change),
}

/// What a client is asked.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) key: String,
    pub(crate) method: String,
    pub(crate) params: Option<RawJson>,
}

/// What changes in what the server offers; those who listen are told.
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
    fn of(outcome: Outcome) -> Self {
        Self {
            outcome,
            ..Self::default()
        }
    }

    /// What a well-behaved server would answer: a tool answers with its arguments.
    #[must_use]
    pub fn usual() -> Self {
        Self::default()
    }

    /// A text: the content of a tool's result, the message of a prompt, the content of a resource.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::of(Outcome::Text(text.into()))
    }

    /// A text with placeholders: `{{ city }}` is an argument, `{{ place.city }}` a member of one. `{{ $call }}` counts
    /// the calls, `{{ $answers.KEY.content.city }}` is what the client gave when it was asked.
    #[must_use]
    pub fn template(text: impl Into<String>) -> Self {
        Self::of(Outcome::Template(text.into()))
    }

    /// A tool's structured content; its text is given beside it.
    #[must_use]
    pub fn structured(content: RawJson) -> Self {
        Self::of(Outcome::Structured(content))
    }

    /// The result as it is written on the wire.
    #[must_use]
    pub fn result(result: RawJson) -> Self {
        Self::of(Outcome::Result(result))
    }

    /// A tool that says that it failed; an internal error where the method is another.
    #[must_use]
    pub fn failure(text: impl Into<String>) -> Self {
        Self::of(Outcome::Failure(text.into()))
    }

    /// An error of the protocol.
    #[must_use]
    pub fn error(error: RpcError) -> Self {
        Self::of(Outcome::Error(error))
    }

    /// No answer at all.
    #[must_use]
    pub fn never() -> Self {
        Self::of(Outcome::Never)
    }

    /// Adds a wait.
    #[must_use]
    pub fn delay(self, time: Duration) -> Self {
        self.step(Step::Delay(time))
    }

    /// Adds a report of progress, for clients that want it.
    #[must_use]
    pub fn progress(self, progress: u64, total: u64) -> Self {
        self.progress_report(json!({"progress": progress, "total": total}).into())
    }

    /// Adds a report of progress: an object with `progress` and perhaps `total` and `message`.
    #[must_use]
    pub fn progress_report(self, report: RawJson) -> Self {
        self.step(Step::Progress(report))
    }

    /// Adds a log message, for clients that want those of the level.
    #[must_use]
    pub fn log(self, level: LogLevel, data: impl Into<String>) -> Self {
        self.log_message(level, json!({"data": data.into()}).into())
    }

    /// Adds a log message: an object with `data` and perhaps `logger`.
    #[must_use]
    pub fn log_message(self, level: LogLevel, message: RawJson) -> Self {
        self.step(Step::Log(level, message))
    }

    /// Adds a notification to every client that listens.
    #[must_use]
    pub fn notify(self, method: impl Into<String>, params: Option<RawJson>) -> Self {
        self.step(Step::Notify(method.into(), params))
    }

    /// Adds a question to the client, such as `sampling/createMessage`: in the middle of a legacy request, as
    /// `input_required` to a modern one, which is asked several at once if nothing stands between them. What it gives is
    /// kept under the key.
    #[must_use]
    pub fn ask(self, key: impl Into<String>, method: impl Into<String>, params: Option<RawJson>) -> Self {
        self.step(Step::Ask(Question {
            key: key.into(),
            method: method.into(),
            params,
        }))
    }

    /// Adds a question to the user with a form of this schema.
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

    /// Takes a tool away from the server.
    #[must_use]
    pub fn remove_tool(self, name: impl Into<String>) -> Self {
        self.step(Step::Change(Change::RemoveTool(name.into())))
    }

    /// Adds a prompt to the server, or replaces the one of the same name.
    #[must_use]
    pub fn add_prompt(self, prompt: MockPrompt) -> Self {
        self.step(Step::Change(Change::AddPrompt(Arc::new(prompt))))
    }

    /// Takes a prompt away from the server.
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

    /// Takes a resource or a template away from the server.
    #[must_use]
    pub fn remove_resource(self, uri: impl Into<String>) -> Self {
        self.step(Step::Change(Change::RemoveResource(uri.into())))
    }

    /// Tells those who watch a resource that it has changed.
    #[must_use]
    pub fn update_resource(self, uri: impl Into<String>) -> Self {
        self.step(Step::Change(Change::UpdateResource(uri.into())))
    }

    /// Lets the answer misbehave.
    #[must_use]
    pub fn misbehave(mut self, misbehaviour: Misbehavior) -> Self {
        self.misbehaviours.push(misbehaviour);
        self
    }

    pub(crate) fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// This reply with everything of another behind it; the outcome is the other's where this one has the usual one.
    pub(crate) fn over(&self, inner: &Self) -> Self {
        let outcome = match &self.outcome {
            Outcome::Usual => &inner.outcome,
            own => own,
        };
        Self {
            steps: [&*self.steps, &inner.steps].concat(),
            outcome: outcome.clone(),
            misbehaviours: [&*self.misbehaviours, &inner.misbehaviours].concat(),
        }
    }

    /// Takes all misbehaviour away.
    pub(crate) fn behave(&mut self) {
        self.misbehaviours.clear();
        if matches!(self.outcome, Outcome::Never) {
            self.outcome = Outcome::Usual;
        }
    }

    /// How long the steps wait.
    pub(crate) fn delays(&self) -> Duration {
        let delays = self.steps.iter().map(|step| match step {
            Step::Delay(time) => *time,
            _ => Duration::ZERO,
        });
        delays.sum()
    }
}
