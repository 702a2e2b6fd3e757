use std::time::Duration;

use toolplane::core::{DegradedStep, ErrorKind};

use crate::{
    AttemptEnd, AttemptRecord, CallRecord, CallResult, FlowRecord, FlowResult, OperationRecord,
    ReplyFreshness, SimulationRecord,
    client::{FRESH, STALE},
};

/// Tolerance: the resolution of the runtime's timers, and a millisecond for the steps between them.
const GRAIN: Duration = Duration::from_millis(2);
/// Retry budget of an upstream at the start: ten seconds' worth of one retry a second. A tenth of the calls and one a
/// second are allowed in addition.
const RESERVE: usize = 10;

/// Returns the violations in a record.
#[must_use]
pub fn check(record: &SimulationRecord) -> Vec<String> {
    let operations = record.operations.iter().enumerate();
    let mut violations: Vec<String> = operations
        .flat_map(|(index, operation)| {
            let of = move |what: String| format!("op{index} ({}): {what}", operation.tool);
            let given = operation.invocations.iter().flat_map(move |invocation| {
                let replaced = check_replaced(record, index, invocation);
                check_given(record, index, invocation).into_iter().chain(replaced)
            });
            check_operation(operation).into_iter().chain(given).map(of)
        })
        .collect();
    let hedges = record.attempts.iter().filter(|attempt| attempt.is_hedge);
    violations.extend(
        hedges
            .filter(|hedge| !record.operations[hedge.operation].is_repeatable)
            .map(|hedge| format!("op{}: hedged, though it must not run twice", hedge.operation)),
    );
    violations.extend(check_stand_ins(record));
    violations.extend(record.flows.iter().flat_map(|flow| check_flow(record, flow)));
    violations.extend(record.leaks.iter().cloned());
    let n_invocations: usize = record
        .operations
        .iter()
        .map(|operation| operation.invocations.len())
        .sum();
    let attempts = record.attempts.iter();
    let n_stand_ins = attempts
        .clone()
        .filter(|attempt| attempt.stands_in && attempt.number == 1)
        .count();
    let n_calls = n_invocations + n_stand_ins;
    let allowed = RESERVE + n_calls.div_ceil(10) + record.elapsed.as_secs() as usize;
    let n_retries = attempts.filter(|attempt| attempt.number > 1).count();
    if n_retries > allowed {
        violations.push(format!(
            "{n_retries} retries and hedges of {n_calls} calls, where {allowed} are allowed"
        ));
    }
    violations
}

/// Checks a call of the workflow: it ended in time and once, its steps ran in their order, and its result says what they did.
fn check_flow(record: &SimulationRecord, flow: &FlowRecord) -> Vec<String> {
    let of = |what: &str| format!("workflow of op{}: {what}", flow.steps[0]);
    let Some((ended, result)) = flow.ended else {
        return vec![of("it never ended")];
    };
    let mut violations = Vec::new();
    if ended - flow.began > flow.limit + GRAIN {
        violations.push(of("it took longer than its limit"));
    }
    let [first, second] = flow.steps.map(|step| record.operations[step].n_effects);
    if second > 0 && first == 0 {
        violations.push(of("the second step was done without the first"));
    }
    match result {
        FlowResult::Completed if (first, second) != (1, 1) => {
            violations.push(of("it is complete, and not every step was done"));
        }
        FlowResult::Failed {
            may_have_run: false, ..
        } if first + second > 0 => {
            violations.push(of("a step was done, and the error says that none may have run"));
        }
        _ => {}
    }
    violations
}

/// Checks that no fallback was called after a tool that may have run and must not run twice.
fn check_stand_ins(record: &SimulationRecord) -> Vec<String> {
    let stand_ins = record.attempts.iter().enumerate();
    let stand_ins = stand_ins.filter(|(_, attempt)| attempt.stands_in && attempt.number == 1);
    let violations =
        stand_ins.filter_map(|(index, stand_in)| {
            let before = record.attempts[..index].iter();
            let mut same_call = before.filter(|attempt| attempt.call == stand_in.call);
            same_call.any(|attempt| attempt.may_have_run(stand_in.at)).then(|| {
            let operation = stand_in.operation;
            format!("op{operation}: another tool was called, though one may have run that must not run twice")
        })
        });
    violations.collect()
}

/// Checks a stale or default answer: it is forbidden if a tool may have run that must not run twice.
fn check_replaced(record: &SimulationRecord, index: usize, invocation: &CallRecord) -> Option<String> {
    let (ended, CallResult::Degraded(step)) = invocation.ended? else {
        return None;
    };
    let is_of_this = |attempt: &&AttemptRecord| {
        let is_later = attempt.over.is_none_or(|over| over > invocation.began);
        attempt.operation == index && is_later && step != DegradedStep::Fallback
    };
    let mut attempts = record.attempts.iter().filter(is_of_this);
    attempts
        .any(|attempt| attempt.may_have_run(ended))
        .then(|| format!("was given the answer of the step `{step}`, though its tool may have run"))
}

fn check_operation(operation: &OperationRecord) -> Vec<String> {
    let mut violations = Vec::new();
    let results: Vec<CallResult> = operation
        .invocations
        .iter()
        .filter_map(|invocation| Some(invocation.ended?.1))
        .collect();
    if results.len() != operation.invocations.len() {
        violations.push("a call never ended".to_owned());
    }
    for invocation in &operation.invocations {
        let Some((ended, _)) = invocation.ended else {
            continue;
        };
        let took = ended - invocation.began;
        if took > invocation.limit + GRAIN {
            violations.push(format!("took {took:?}, where {:?} were left", invocation.limit));
        }
    }
    let (n_effects, is_answered) = (
        operation.n_effects,
        results.iter().any(|result| result.says_done()),
    );
    // A question may be asked, and thus done, several times.
    let is_once = !operation.is_repeatable && !operation.is_kept;
    if is_once && n_effects > 1 {
        violations.push(format!("done {n_effects} times"));
    }
    if is_answered && n_effects == 0 {
        violations.push("answered, and not done".to_owned());
    }
    let told_not_done = !results.is_empty() && results.iter().all(|result| result.says_not_done());
    if is_once && n_effects > 0 && told_not_done {
        violations.push(format!(
            "done, and every caller was told that it is not: {results:?}"
        ));
    }
    violations
}

/// Checks the answer that a call received.
fn check_given(record: &SimulationRecord, index: usize, invocation: &CallRecord) -> Option<String> {
    let operation = &record.operations[index];
    let given = invocation.given?;
    let ended = invocation.ended?.0;
    let is_its = |answer: &&AttemptEnd| answer.operation == index;
    let Some(answer) = record.answers.get(given.answer).filter(is_its) else {
        return Some("was given what the world never answered".to_owned());
    };
    let (began, made) = (invocation.began, answer.at);
    let (said, limit) = match given.said {
        // The answer of an idempotency key is repeated later and is still the current one.
        ReplyFreshness::Unmarked => {
            let is_old = made + GRAIN < began && !operation.has_key;
            return is_old.then(|| "was given an old answer that does not say so".to_owned());
        }
        ReplyFreshness::Cached(age) => (age, FRESH),
        ReplyFreshness::Stale(age, _) => (age, STALE),
    };
    let age = ended.saturating_sub(made);
    if !operation.is_kept {
        return Some("was given a kept answer, and none may be kept".to_owned());
    }
    if age > limit + GRAIN {
        return Some(format!(
            "was given an answer of {age:?} ago, where {limit:?} are allowed"
        ));
    }
    if age.abs_diff(said) > GRAIN {
        return Some(format!("was given an answer of {age:?} ago that says {said:?}"));
    }
    if answer.generation != invocation.generation {
        return Some("was given an answer of another configuration".to_owned());
    }
    match given.said {
        ReplyFreshness::Stale(_, after) => check_stale(record, index, invocation, after),
        _ => None,
    }
}

/// Checks that a stale answer was allowed instead of a new one.
fn check_stale(
    record: &SimulationRecord,
    index: usize,
    invocation: &CallRecord,
    after: Option<ErrorKind>,
) -> Option<String> {
    let (began, ended) = (invocation.began, invocation.ended?.0);
    let Some(after) = after else {
        return Some("was given an old answer, and nothing failed".to_owned());
    };
    if !after.degrades() {
        return Some(format!("was given an old answer after `{after}`"));
    }
    let concerns = |ending: &&AttemptEnd| {
        ending.operation == index && ending.generation == invocation.generation && ending.at >= began
    };
    let mut answers = record.answers.iter().filter(concerns);
    if answers.any(|answer| answer.at + GRAIN < ended) {
        return Some("was given an old answer, though a new one came meanwhile".to_owned());
    }
    // All waiting calls learn the end of an attempt at the same time.
    let mut losses = record.losses.iter().filter(concerns);
    let is_unknown = losses.any(|loss| loss.at > began && loss.at <= ended);
    (is_unknown && !record.operations[index].is_repeatable)
        .then(|| "was given an old answer, and nobody knows what was done".to_owned())
}
