//! The simulations of CI, and tests of the checks.

use std::time::Duration;

use toolplane::core::{DegradedStep, ErrorKind};
use toolplane_sim::{
    AttemptEnd, AttemptRecord, CallRecord, CallResult, FlowRecord, FlowResult, OperationRecord,
    ReceivedAnswer, ReplyFreshness, SimulationRecord, check, run,
};

#[test]
fn two_hundred_worlds() {
    let mut all = String::new();
    for seed in 0..200 {
        let run = run(seed);
        assert!(
            run.violations.is_empty(),
            "seed {seed}: {:#?}\n{}",
            run.violations,
            run.history
        );
        all.push_str(&run.history);
    }
    for what in [
        "Answered",
        "Withdrawn",
        "Failed(Unavailable)",
        "Failed(Timeout)",
        "Failed(OutcomeUnknown)",
        "Failed(UpstreamError)",
        "Failed(RateLimited)",
        "Failed(Overloaded)",
        "Degraded(Fallback)",
        "Degraded(Default)",
        "Degraded(Stale)",
        "LostAfter",
        "HangsAfter",
        "arrives beside another: Done",
        "workflow: Completed",
        "workflow: Withdrawn",
        "may_have_run: true",
        "may_have_run: false",
    ] {
        assert!(all.contains(what), "{what} never comes up");
    }
}

#[test]
fn the_same_seed_is_the_same_history() {
    for seed in 0..20 {
        assert_eq!(run(seed).history, run(seed).history, "seed {seed}");
    }
    assert_ne!(run(1).history, run(2).history);
}

const SECOND: Duration = Duration::from_secs(1);

/// Returns a call of one second with this result.
fn invocation(result: CallResult) -> CallRecord {
    CallRecord {
        began: SECOND,
        limit: 2 * SECOND,
        generation: 0,
        ended: Some((2 * SECOND, result)),
        given: None,
    }
}

fn record(operation: OperationRecord) -> SimulationRecord {
    let mut record = SimulationRecord::default();
    record.operations.push(operation);
    record
}

#[test]
fn the_checks_find_what_they_are_for() {
    let pay = |result, n_effects| OperationRecord {
        tool: "pay",
        invocations: vec![invocation(result)],
        n_effects,
        ..OperationRecord::default()
    };
    let good = [
        pay(CallResult::Answered, 1),
        pay(CallResult::Failed(ErrorKind::Unavailable), 0),
        pay(CallResult::Failed(ErrorKind::OutcomeUnknown), 1),
        pay(CallResult::Failed(ErrorKind::OutcomeUnknown), 0),
        pay(CallResult::Withdrawn, 1),
        pay(CallResult::Degraded(DegradedStep::Fallback), 1),
        pay(CallResult::Degraded(DegradedStep::Default), 0),
        OperationRecord {
            is_repeatable: true,
            ..pay(CallResult::Failed(ErrorKind::Timeout), 3)
        },
    ];
    for operation in good {
        assert_eq!(check(&record(operation)), Vec::<String>::new());
    }
    let never = CallRecord {
        ended: None,
        ..invocation(CallResult::Withdrawn)
    };
    let late = CallRecord {
        limit: SECOND / 2,
        ..invocation(CallResult::Answered)
    };
    let with = |invocation| OperationRecord {
        invocations: vec![invocation],
        ..pay(CallResult::Answered, 1)
    };
    let bad = [
        (pay(CallResult::Answered, 2), "done 2 times"),
        (pay(CallResult::Answered, 0), "answered, and not done"),
        (
            pay(CallResult::Failed(ErrorKind::Timeout), 1),
            "told that it is not",
        ),
        (
            pay(CallResult::Degraded(DegradedStep::Default), 1),
            "told that it is not",
        ),
        (
            pay(CallResult::Degraded(DegradedStep::Fallback), 0),
            "answered, and not done",
        ),
        (
            pay(CallResult::Degraded(DegradedStep::Fallback), 2),
            "done 2 times",
        ),
        (with(never), "never ended"),
        (with(late), "took 1s, where 500ms were left"),
    ];
    for (operation, what) in bad {
        let found = check(&record(operation));
        assert!(found.len() == 1 && found[0].contains(what), "{what}: {found:?}");
    }
}

/// Returns the end of an attempt at this second.
fn ending(at: u64) -> AttemptEnd {
    AttemptEnd {
        operation: 0,
        at: Duration::from_secs(at),
        generation: 0,
    }
}

/// Returns a question to a cached tool: answered at the times of `answers`, and called from 10 s to 12 s, when it
/// received the given one of them.
fn question(answers: &[u64], result: CallResult, answer: usize, said: ReplyFreshness) -> SimulationRecord {
    let mut record = record(OperationRecord {
        tool: "look",
        is_repeatable: true,
        is_kept: true,
        n_effects: answers.len(),
        invocations: vec![CallRecord {
            began: 10 * SECOND,
            limit: 20 * SECOND,
            generation: 0,
            ended: Some((12 * SECOND, result)),
            given: Some(ReceivedAnswer { answer, said }),
        }],
        ..OperationRecord::default()
    });
    record.answers = answers.iter().map(|at| ending(*at)).collect();
    record
}

#[test]
fn the_checks_find_answers_that_are_old() {
    let stale = CallResult::Degraded(DegradedStep::Stale);
    let old = |age, after| ReplyFreshness::Stale(Duration::from_secs(age), after);
    let failed = Some(ErrorKind::Unavailable);
    let good = [
        question(&[12], CallResult::Answered, 0, ReplyFreshness::Unmarked),
        question(&[11], CallResult::Answered, 0, ReplyFreshness::Unmarked),
        question(&[11], CallResult::Answered, 0, ReplyFreshness::Cached(SECOND)),
        question(&[3, 7], stale, 1, old(5, failed)),
        question(&[6], stale, 0, old(6, Some(ErrorKind::Timeout))),
    ];
    for record in good {
        assert_eq!(check(&record), Vec::<String>::new());
    }
    let with = |change: fn(&mut SimulationRecord)| {
        let mut record = question(&[7, 7], stale, 0, old(5, failed));
        change(&mut record);
        record
    };
    // Another configuration has an answer at the same time.
    let both = with(|record| record.answers[1].generation = 1);
    assert_eq!(check(&both), Vec::<String>::new());
    let bad = [
        (
            question(&[8], CallResult::Answered, 0, ReplyFreshness::Unmarked),
            "an old answer that does not say so",
        ),
        (
            question(&[9], CallResult::Answered, 0, ReplyFreshness::Cached(3 * SECOND)),
            "of 3s ago, where 1s are allowed",
        ),
        (
            question(&[5], stale, 0, old(7, failed)),
            "of 7s ago, where 6s are allowed",
        ),
        (question(&[7], stale, 0, old(2, failed)), "of 5s ago that says 2s"),
        (
            question(&[7], stale, 1, old(4, failed)),
            "what the world never answered",
        ),
        (question(&[7], stale, 0, old(5, None)), "and nothing failed"),
        (
            question(&[7], stale, 0, old(5, Some(ErrorKind::OutcomeUnknown))),
            "after `outcome_unknown`",
        ),
        (
            question(&[7], stale, 0, old(5, Some(ErrorKind::Denied))),
            "after `denied`",
        ),
        (
            question(&[7, 11], stale, 0, old(5, failed)),
            "though a new one came meanwhile",
        ),
        (
            with(|record| {
                record.operations[0].is_repeatable = false;
                record.losses.push(ending(11));
            }),
            "nobody knows what was done",
        ),
        (
            with(|record| record.operations[0].is_kept = false),
            "none may be kept",
        ),
        (
            with(|record| record.operations[0].invocations[0].generation = 1),
            "of another configuration",
        ),
        (
            with(|record| record.answers[0].generation = 1),
            "of another configuration",
        ),
    ];
    for (record, what) in bad {
        let found = check(&record);
        assert!(found.len() == 1 && found[0].contains(what), "{what}: {found:?}");
    }
    // A repeatable call can be lost and made again.
    let lost = with(|record| record.losses.push(ending(11)));
    assert_eq!(check(&lost), Vec::<String>::new());
}

#[test]
fn the_checks_find_attempts_that_are_too_many() {
    let pay = OperationRecord {
        tool: "pay",
        invocations: vec![invocation(CallResult::Answered)],
        n_effects: 1,
        ..OperationRecord::default()
    };
    let mut hedged = record(pay.clone());
    hedged.attempts = vec![AttemptRecord {
        operation: 0,
        at: SECOND,
        number: 2,
        stands_in: false,
        is_hedge: true,
        ..AttemptRecord::default()
    }];
    assert!(
        check(&hedged)[0].contains("must not run twice"),
        "{:?}",
        check(&hedged)
    );
    let mut storm = record(pay);
    storm.attempts = vec![
        AttemptRecord {
            operation: 0,
            at: SECOND,
            number: 2,
            stands_in: false,
            is_hedge: false,
            ..AttemptRecord::default()
        };
        50
    ];
    assert!(
        check(&storm)[0].contains("50 retries and hedges of 1 calls"),
        "{:?}",
        check(&storm)
    );
}

#[test]
fn what_stands_in_for_a_tool_that_may_have_run_is_found() {
    let pay = AttemptRecord {
        at: SECOND,
        number: 1,
        sent: Some(SECOND),
        over: Some(2 * SECOND),
        ..AttemptRecord::default()
    };
    let stand_in = AttemptRecord {
        at: 2 * SECOND,
        number: 1,
        stands_in: true,
        ..AttemptRecord::default()
    };
    let unharmed: [fn(&mut AttemptRecord); 4] = [
        |attempt| attempt.sent = None,
        |attempt| attempt.is_not_taken = true,
        |attempt| attempt.is_repeatable = true,
        |attempt| attempt.call = 7,
    ];
    let of = |attempts: &[AttemptRecord], result| {
        let invocation = CallRecord {
            began: SECOND,
            limit: 60 * SECOND,
            generation: 0,
            ended: Some((3 * SECOND, result)),
            given: None,
        };
        let operation = OperationRecord {
            tool: "pay",
            is_repeatable: true,
            invocations: vec![invocation],
            n_effects: 1,
            ..OperationRecord::default()
        };
        check(&SimulationRecord {
            operations: vec![operation],
            attempts: attempts.to_vec(),
            elapsed: 3 * SECOND,
            ..SimulationRecord::default()
        })
    };
    let (fallback, given) = (DegradedStep::Fallback, DegradedStep::Default);
    let found = of(&[pay, stand_in], CallResult::Degraded(fallback));
    assert!(found[0].contains("another tool was called"), "{found:?}");
    let found = of(&[pay], CallResult::Degraded(given));
    assert!(found[0].contains("its tool may have run"), "{found:?}");
    for change in unharmed {
        let mut first = pay;
        change(&mut first);
        let found = of(&[first, stand_in], CallResult::Degraded(fallback));
        assert!(found.is_empty(), "{found:?}");
    }
}

#[test]
fn the_checks_find_workflows_that_say_something_false() {
    let of = |effects: [usize; 2], ended: Option<FlowResult>| {
        let step = |n_effects| OperationRecord {
            tool: "book",
            n_effects,
            ..OperationRecord::default()
        };
        check(&SimulationRecord {
            operations: effects.map(step).into(),
            flows: vec![FlowRecord {
                steps: [0, 1],
                began: SECOND,
                limit: 2 * SECOND,
                ended: ended.map(|result| (2 * SECOND, result)),
            }],
            ..SimulationRecord::default()
        })
    };
    let failed = |may_have_run| FlowResult::Failed {
        kind: ErrorKind::Unavailable,
        may_have_run,
    };
    for (effects, result) in [
        ([1, 1], FlowResult::Completed),
        ([1, 0], failed(true)),
        ([0, 0], failed(true)),
        ([0, 0], failed(false)),
        ([1, 1], FlowResult::Withdrawn),
    ] {
        assert_eq!(of(effects, Some(result)), Vec::<String>::new());
    }
    for (effects, result, what) in [
        ([1, 0], Some(FlowResult::Completed), "not every step was done"),
        ([1, 0], Some(failed(false)), "none may have run"),
        ([0, 1], Some(failed(true)), "without the first"),
        ([0, 0], None, "never ended"),
        ([2, 0], Some(failed(true)), "done 2 times"),
    ] {
        let found = of(effects, result);
        assert!(found.len() == 1 && found[0].contains(what), "{what}: {found:?}");
    }
}
