//! Definition of a workflow, as read from its settings.

mod read;

use std::{sync::Arc, time::Duration};

use tool_mapping::{Expression, Mapping, Placed};

/// Definition of a workflow.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) steps: Scope,
    /// Result of the workflow. Without it, the result is that of the last step.
    pub(crate) output: Option<Mapping>,
    pub(crate) on_error: OnError,
    /// Maximum number of concurrent calls.
    pub(crate) window: usize,
    /// Maximum number of calls, those of inner workflows included.
    pub(crate) max_calls: u32,
}

/// Reaction of a workflow to the failure of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum OnError {
    /// The workflow fails as the step did.
    #[default]
    Fail,
    /// Steps that do not need the failed one go on, and the result is marked as partial.
    Continue,
}

/// Steps that see each other's results.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    pub(crate) steps: Vec<Step>,
}

/// Step of a workflow.
#[derive(Debug)]
pub(crate) struct Step {
    /// Name, which no other step of the workflow has.
    pub(crate) name: Arc<str>,
    /// JSON Pointer from the root of the settings.
    pub(crate) at: String,
    pub(crate) action: Action,
    /// Names of the steps that it waits for, as written, each with its place.
    pub(crate) depends_on: Vec<(String, Arc<str>)>,
    /// Indexes, in its scope, of all steps that it waits for: those of `depends_on`, and those that it refers to.
    pub(crate) dependencies: Vec<usize>,
    pub(crate) optional: bool,
    pub(crate) fallback: Option<ToolCall>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) retry: Option<StepRetry>,
    /// `true` if it may run again although it may have run.
    pub(crate) repeatable: bool,
}

/// Action of a step.
#[derive(Debug)]
pub(crate) enum Action {
    Call(ToolCall),
    /// Steps whose results are one object.
    Parallel(Scope),
    /// Steps of one of two branches. The result is that of the last step of the taken one.
    Conditional {
        condition: Placed<Expression>,
        then: Scope,
        otherwise: Scope,
    },
    /// Steps for each item of a list. The result is the list of the results of the last of them.
    ForEach {
        items: Mapping,
        /// Place of the items.
        at: String,
        variable: Arc<str>,
        body: Scope,
        max_items: usize,
        window: usize,
    },
}

/// Call of a tool.
#[derive(Debug)]
pub(crate) struct ToolCall {
    pub(crate) tool: Arc<str>,
    /// Place of the tool's name.
    pub(crate) at: String,
    /// Arguments. Without them, the tool gets those of the workflow.
    pub(crate) input: Option<Mapping>,
    /// Place of the arguments.
    pub(crate) input_at: String,
}

/// Retries of a step, in place of the tool's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StepRetry {
    /// Maximum number of attempts, the first included.
    pub max_attempts: u32,
    /// Maximum pause before the second attempt.
    pub initial_delay: Option<Duration>,
    /// Upper bound of all pauses.
    pub max_delay: Option<Duration>,
}

/// Maximum number of steps of a workflow.
pub(crate) const MAX_STEPS: usize = 200;
/// Maximum depth of steps within steps.
pub(crate) const MAX_DEPTH: usize = 8;
/// Maximum number of calls that a workflow may ask for.
pub(crate) const MAX_CALLS: u32 = 100_000;
/// Maximum number of items of a loop that a workflow may ask for.
pub(crate) const MAX_ITEMS: u32 = 10_000;
/// Default number of concurrent calls.
pub(crate) const DEFAULT_WINDOW: usize = 5;
/// Default maximum number of calls.
pub(crate) const DEFAULT_CALLS: u32 = 1000;
/// Default maximum number of items of a loop.
pub(crate) const DEFAULT_ITEMS: usize = 100;
/// Names that a variable of a loop cannot have.
pub(crate) const RESERVED: [&str; 3] = ["input", "results", "index"];

impl Scope {
    /// Removes what an agent declared and no operator accepted: that a call may be repeated.
    pub(crate) fn forget_declarations(&mut self) {
        for step in &mut self.steps {
            step.retry = None;
            step.repeatable = false;
            match &mut step.action {
                Action::Call(_) => {}
                Action::Parallel(scope) | Action::ForEach { body: scope, .. } => scope.forget_declarations(),
                Action::Conditional { then, otherwise, .. } => {
                    then.forget_declarations();
                    otherwise.forget_declarations();
                }
            }
        }
    }

    /// Calls a function for each step, inner ones included.
    pub(crate) fn visit<'a>(&'a self, visit: &mut dyn FnMut(&'a Step)) {
        for step in &self.steps {
            visit(step);
            for scope in step.action.scopes() {
                scope.visit(visit);
            }
        }
    }
}

impl Action {
    /// Returns the scopes inside of the action, in the order in which they are written.
    pub(crate) fn scopes(&self) -> impl Iterator<Item = &Scope> {
        let scopes = match self {
            Self::Call(_) => [None, None],
            Self::Parallel(scope) | Self::ForEach { body: scope, .. } => [Some(scope), None],
            Self::Conditional { then, otherwise, .. } => [Some(then), Some(otherwise)],
        };
        scopes.into_iter().flatten()
    }

    /// Returns the word for the action in graphs and records.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Call(_) => "call",
            Self::Parallel(_) => "parallel",
            Self::Conditional { .. } => "conditional",
            Self::ForEach { .. } => "for_each",
        }
    }
}

impl Step {
    /// Returns the calls that the step itself may make: its tool, and its fallback.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        let call = match &self.action {
            Action::Call(call) => Some(call),
            _ => None,
        };
        call.into_iter().chain(&self.fallback)
    }
}
