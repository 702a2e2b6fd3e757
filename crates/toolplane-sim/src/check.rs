use std::time::Duration;

use crate::{Operation, Record, Result};

/// The resolution of the runtime's timers, and a millisecond for what is done between them.
const GRAIN: Duration = Duration::from_millis(2);
/// What the budget of retries of an upstream allows: a tenth of the calls, one a second, and ten seconds' worth at once.
const RESERVE: usize = 10;

/// What of a record should not have been.
#[must_use]
pub fn check(record: &Record) -> Vec<String> {
    let operations = record.operations.iter().enumerate();
    let mut violations: Vec<String> = operations
        .flat_map(|(index, operation)| {
            let of = move |what: String| format!("op{index} ({}): {what}", operation.tool);
            check_operation(operation).into_iter().map(of)
        })
        .collect();
    let hedges = record.attempts.iter().filter(|attempt| attempt.is_hedge);
    violations.extend(
        hedges
            .filter(|hedge| !record.operations[hedge.operation].is_repeatable)
            .map(|hedge| format!("op{}: hedged, though it must not run twice", hedge.operation)),
    );
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

fn check_operation(operation: &Operation) -> Vec<String> {
    let mut violations = Vec::new();
    let results: Vec<Result> = operation
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
    if !operation.is_repeatable && n_effects > 1 {
        violations.push(format!("done {n_effects} times"));
    }
    if is_answered && n_effects == 0 {
        violations.push("answered, and not done".to_owned());
    }
    let told_not_done = !results.is_empty() && results.iter().all(|result| result.says_not_done());
    if !operation.is_repeatable && n_effects > 0 && told_not_done {
        violations.push(format!(
            "done, and every caller was told that it is not: {results:?}"
        ));
    }
    violations
}
