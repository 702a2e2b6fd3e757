//! Steps of one scope, in the order of their dependencies.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::{
    StreamExt,
    stream::{self, FuturesUnordered},
};
use parking_lot::Mutex;
use raw_json::{JsonKind, RawJson};
use tool_core::{BoxFuture, CallContext, ErrorKind, Instant, ToolError};
use tool_mapping::{MappingValues, Results};

use super::{
    Run,
    call::{CallEnd, invalid},
    record::{StepRecord, StepStatus},
};
use crate::definition::{Action, OnError, Scope, Step};

/// Run of the steps of one scope.
pub(super) struct ScopeRun<'a> {
    pub(super) run: &'a Run<'a>,
    /// Call of the workflow, with the deadline of the steps around the scope.
    pub(super) base: &'a CallContext,
    pub(super) results: &'a Results<'a>,
    pub(super) variables: Vec<(Arc<str>, RawJson)>,
    outer: Option<&'a Self>,
    /// Beginning of the paths of the steps.
    prefix: String,
    /// Failure that ends the scope.
    failure: Mutex<Option<(String, ToolError)>>,
}

/// End of a step.
pub(super) enum StepEnd {
    Value(RawJson, StepStatus),
    /// Its branch was not taken.
    Skipped,
    /// A step at this path failed.
    Failed(String, ToolError),
    /// The run has stopped.
    Stopped,
}

impl<'a> ScopeRun<'a> {
    pub(super) fn outermost(run: &'a Run<'a>, results: &'a Results<'a>) -> Self {
        Self {
            run,
            base: &run.base,
            results,
            variables: Vec::new(),
            outer: None,
            prefix: String::new(),
            failure: Mutex::new(None),
        }
    }

    fn inner<'b>(&'b self, base: &'b CallContext, results: &'b Results<'b>, prefix: String) -> ScopeRun<'b> {
        ScopeRun {
            run: self.run,
            base,
            results,
            variables: self.variables.clone(),
            outer: Some(self),
            prefix,
            failure: Mutex::new(None),
        }
    }

    /// Runs the steps. What has begun ends; after a failure, nothing else begins.
    pub(super) fn run<'s>(&'s self, scope: &'s Scope) -> BoxFuture<'s, ()> {
        Box::pin(async move {
            let mut n_missing: Vec<usize> = scope.steps.iter().map(|step| step.dependencies.len()).collect();
            let mut running = FuturesUnordered::new();
            let begin = |index: usize| async move {
                self.step(&scope.steps[index]).await;
                index
            };
            for (index, n_missing) in n_missing.iter().enumerate() {
                if *n_missing == 0 {
                    running.push(begin(index));
                }
            }
            while let Some(ended) = running.next().await {
                for (index, step) in scope.steps.iter().enumerate() {
                    if step.dependencies.contains(&ended) {
                        n_missing[index] -= 1;
                        if n_missing[index] == 0 {
                            running.push(begin(index));
                        }
                    }
                }
            }
            if self.outer.is_none()
                && let Some((step, error)) = self.failure.lock().take()
            {
                self.run.fail(&step, error);
            }
        })
    }

    /// Returns `true` if no further step of the scope may begin.
    pub(super) fn is_stopped(&self) -> bool {
        let mut scopes = std::iter::successors(Some(self), |scope| scope.outer);
        scopes.any(|scope| scope.failure.lock().is_some()) || self.run.is_stopped()
    }

    /// Runs a step, and records how it ended.
    async fn step(&self, step: &Step) {
        if self.is_stopped() {
            return;
        }
        let path = format!("{}{}", self.prefix, step.name);
        let start = self.base.clock.now();
        let mut own_base = None;
        if let (Some(timeout), false) = (step.timeout, matches!(step.action, Action::Call(_))) {
            let mut base = self.base.fork();
            base.tighten_deadline(timeout);
            own_base = Some(base);
        }
        let base = own_base.as_ref().unwrap_or(self.base);
        let end = self.perform(step, &path, base).await;
        let end = self.with_fallback(step, &path, end).await;
        self.settle(step, &path, end, start);
    }

    fn settle(&self, step: &Step, path: &str, end: StepEnd, start: Instant) {
        let is_call = matches!(step.action, Action::Call(_));
        let record = |status, error: Option<&ToolError>| StepRecord {
            step: path.to_owned(),
            tool: None,
            status,
            attempts: 0,
            duration: self.base.clock.now().since(start),
            error: error.map(|error| (error.kind(), error.message().to_owned())),
        };
        match end {
            StepEnd::Value(value, status) => {
                self.results.put(step.name.clone(), value);
                if !is_call {
                    self.run.record(record(status, None));
                }
            }
            StepEnd::Skipped => self.run.record(record(StepStatus::Skipped, None)),
            StepEnd::Failed(at, error) => {
                if !is_call {
                    self.run.record(record(StepStatus::Failed, Some(&error)));
                }
                if step.optional || self.run.definition.on_error == OnError::Continue {
                    self.results.put_failed(step.name.clone());
                    self.run.go_on_without();
                } else {
                    self.failure.lock().get_or_insert((at, error));
                }
            }
            StepEnd::Stopped => {}
        }
    }

    /// Does what a step does.
    async fn perform(&self, step: &Step, path: &str, base: &CallContext) -> StepEnd {
        if let Some((_, missing)) = step
            .depends_on
            .iter()
            .find(|(_, name)| self.results.has_failed(name))
        {
            let message = format!("it depends on `{missing}`, which has failed");
            let error = ToolError::new(ErrorKind::Unavailable, message).with_no_retry();
            if matches!(step.action, Action::Call(_)) {
                self.run.record(StepRecord {
                    step: path.to_owned(),
                    tool: None,
                    status: StepStatus::Failed,
                    attempts: 0,
                    duration: Duration::ZERO,
                    error: Some((error.kind(), error.message().to_owned())),
                });
            }
            return StepEnd::Failed(path.to_owned(), error);
        }
        match &step.action {
            Action::Call(call) => match self.call(step, call, path.to_owned()).await {
                CallEnd::Value(value, status) => StepEnd::Value(value, status),
                CallEnd::Failed(error) => StepEnd::Failed(path.to_owned(), error),
                CallEnd::Stopped => StepEnd::Stopped,
            },
            Action::Parallel(scope) => {
                let results = Results::within(self.results);
                let inner = self.inner(base, &results, format!("{path}."));
                inner.run(scope).await;
                inner.end(|| results.to_json())
            }
            Action::Conditional {
                condition,
                then,
                otherwise,
            } => {
                let scope = match condition.value.is_true(&self.values()) {
                    Ok(true) => then,
                    Ok(false) if otherwise.steps.is_empty() => return StepEnd::Skipped,
                    Ok(false) => otherwise,
                    Err(problem) => return StepEnd::Failed(path.to_owned(), invalid(problem)),
                };
                let results = Results::within(self.results);
                let inner = self.inner(base, &results, format!("{path}."));
                inner.run(scope).await;
                inner.end(|| last_result(scope, &results))
            }
            Action::ForEach { .. } => self.for_each(step, path, base).await,
        }
    }

    async fn for_each(&self, step: &Step, path: &str, base: &CallContext) -> StepEnd {
        let Action::ForEach {
            items,
            variable,
            body,
            max_items,
            window,
            ..
        } = &step.action
        else {
            return StepEnd::Stopped;
        };
        let items = match items.make(&self.values()) {
            Ok(items) if items.kind() == JsonKind::Array => items,
            Ok(other) => {
                let message = format!("`for_each` needs a list, and the value is {}", word(&other));
                return StepEnd::Failed(path.to_owned(), invalid(message));
            }
            Err(problem) => return StepEnd::Failed(path.to_owned(), self.unusable(step, problem)),
        };
        let n_items = items.items().count();
        if n_items > *max_items {
            let message = format!("there are {n_items} items; `max_items` allows {max_items}");
            return StepEnd::Failed(path.to_owned(), invalid(message));
        }
        // After a failure no further item begins, and those that run end.
        let is_halted = &AtomicBool::new(false);
        let ended = stream::iter(items.items().enumerate()).map(|(index, item)| async move {
            if is_halted.load(Ordering::Acquire) || self.is_stopped() {
                return (index, StepEnd::Stopped);
            }
            let results = Results::within(self.results);
            let mut inner = self.inner(base, &results, format!("{path}[{index}]."));
            inner.variables.push((variable.clone(), item));
            inner
                .variables
                .push(("index".into(), RawJson::from(index as u64)));
            inner.run(body).await;
            (index, inner.end(|| last_result(body, &results)))
        });
        let mut ended = ended.buffer_unordered(*window);
        let mut values = vec![RawJson::null(); n_items];
        let mut halt = None;
        while let Some((index, end)) = ended.next().await {
            match end {
                StepEnd::Value(value, _) => values[index] = value,
                StepEnd::Skipped => {}
                end => {
                    is_halted.store(true, Ordering::Release);
                    halt.get_or_insert(end);
                }
            }
        }
        if let Some(end) = halt {
            return end;
        }
        StepEnd::Value(RawJson::from_items(&values), StepStatus::Succeeded)
    }

    /// Calls the fallback of a step that has failed, if it has one and nothing forbids it.
    async fn with_fallback(&self, step: &Step, path: &str, end: StepEnd) -> StepEnd {
        let (at, error) = match end {
            StepEnd::Failed(at, error) => (at, error),
            end => return end,
        };
        if error.kind() == ErrorKind::OutcomeUnknown && !step.repeatable {
            // Whatever followed could repeat what it did.
            self.run.fail(&at, error);
            return StepEnd::Stopped;
        }
        let Some(fallback) = step
            .fallback
            .as_ref()
            .filter(|_| step.repeatable || !error.may_have_run())
        else {
            return StepEnd::Failed(at, error);
        };
        match self.call(step, fallback, format!("{path}!fallback")).await {
            CallEnd::Value(value, _) => StepEnd::Value(value, StepStatus::FellBack),
            CallEnd::Failed(other) => {
                let message = format!("{} (and its fallback: {})", error.message(), other.message());
                let is_unknown = other.kind() == ErrorKind::OutcomeUnknown && !step.repeatable;
                let error = if other.may_have_run() { other } else { error };
                let error = error.with_message(message);
                if is_unknown {
                    self.run.fail(&at, error);
                    return StepEnd::Stopped;
                }
                StepEnd::Failed(at, error)
            }
            CallEnd::Stopped => StepEnd::Stopped,
        }
    }

    /// Returns the end of the step around this scope, whose result is `value`.
    fn end(&self, value: impl FnOnce() -> RawJson) -> StepEnd {
        if let Some((at, error)) = self.failure.lock().take() {
            return StepEnd::Failed(at, error);
        }
        if self.is_stopped() {
            return StepEnd::Stopped;
        }
        StepEnd::Value(value(), StepStatus::Succeeded)
    }

    pub(super) fn values(&self) -> MappingValues<'_> {
        MappingValues::new(&self.run.input, self.results).with_variables(&self.variables)
    }

    /// Returns the error of a step whose input cannot be made.
    pub(super) fn unusable(&self, step: &Step, problem: String) -> ToolError {
        let mut scopes = std::iter::successors(Some(self.results), |results| results.outer());
        let names = names_used(step);
        let is_missing = scopes.any(|results| names.iter().any(|name| results.has_failed(name)));
        if is_missing {
            return ToolError::new(ErrorKind::Unavailable, problem).with_no_retry();
        }
        invalid(problem)
    }
}

/// Returns the result of the last step of a scope; null if it has none.
fn last_result(scope: &Scope, results: &Results<'_>) -> RawJson {
    let last = scope.steps.last();
    let result = last.and_then(|last| results.get(&last.name));
    result.unwrap_or(RawJson::null())
}

/// Returns the names of the steps whose results a step itself uses.
fn names_used(step: &Step) -> Vec<Arc<str>> {
    let mut names = Vec::new();
    crate::check::structure::visit_parts(step, &mut |part| names.extend(part.steps()));
    names
}

fn word(value: &RawJson) -> &'static str {
    match value.kind() {
        JsonKind::Null => "null",
        JsonKind::Bool => "a boolean",
        JsonKind::Number => "a number",
        JsonKind::String => "a text",
        JsonKind::Array => "a list",
        JsonKind::Object => "a map",
    }
}
