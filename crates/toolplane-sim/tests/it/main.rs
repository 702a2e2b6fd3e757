//! What CI simulates, and that the checks find what they are for.

use std::time::Duration;

use toolplane::core::{DegradedStep, ErrorKind};
use toolplane_sim::{Attempt, Invocation, Operation, Record, Result, check, run};

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
        "LostAfter",
        "HangsAfter",
        "arrives beside another: Done",
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

/// A call of one second that came out like this.
fn invocation(result: Result) -> Invocation {
    Invocation {
        began: SECOND,
        limit: 2 * SECOND,
        ended: Some((2 * SECOND, result)),
    }
}

fn record(operation: Operation) -> Record {
    let mut record = Record::default();
    record.operations.push(operation);
    record
}

#[test]
fn the_checks_find_what_they_are_for() {
    let pay = |result, n_effects| Operation {
        tool: "pay",
        invocations: vec![invocation(result)],
        n_effects,
        ..Operation::default()
    };
    let good = [
        pay(Result::Answered, 1),
        pay(Result::Failed(ErrorKind::Unavailable), 0),
        pay(Result::Failed(ErrorKind::OutcomeUnknown), 1),
        pay(Result::Failed(ErrorKind::OutcomeUnknown), 0),
        pay(Result::Withdrawn, 1),
        pay(Result::Degraded(DegradedStep::Fallback), 1),
        pay(Result::Degraded(DegradedStep::Default), 0),
        Operation {
            is_repeatable: true,
            ..pay(Result::Failed(ErrorKind::Timeout), 3)
        },
    ];
    for operation in good {
        assert_eq!(check(&record(operation)), Vec::<String>::new());
    }
    let never = Invocation {
        ended: None,
        ..invocation(Result::Withdrawn)
    };
    let late = Invocation {
        limit: SECOND / 2,
        ..invocation(Result::Answered)
    };
    let with = |invocation| Operation {
        invocations: vec![invocation],
        ..pay(Result::Answered, 1)
    };
    let bad = [
        (pay(Result::Answered, 2), "done 2 times"),
        (pay(Result::Answered, 0), "answered, and not done"),
        (pay(Result::Failed(ErrorKind::Timeout), 1), "told that it is not"),
        (
            pay(Result::Degraded(DegradedStep::Default), 1),
            "told that it is not",
        ),
        (
            pay(Result::Degraded(DegradedStep::Fallback), 0),
            "answered, and not done",
        ),
        (pay(Result::Degraded(DegradedStep::Fallback), 2), "done 2 times"),
        (with(never), "never ended"),
        (with(late), "took 1s, where 500ms were left"),
    ];
    for (operation, what) in bad {
        let found = check(&record(operation));
        assert!(found.len() == 1 && found[0].contains(what), "{what}: {found:?}");
    }
    let mut hedged = record(pay(Result::Answered, 1));
    hedged.attempts = vec![Attempt {
        operation: 0,
        at: SECOND,
        number: 2,
        stands_in: false,
        is_hedge: true,
    }];
    assert!(
        check(&hedged)[0].contains("must not run twice"),
        "{:?}",
        check(&hedged)
    );
    let mut storm = record(pay(Result::Answered, 1));
    storm.attempts = vec![
        Attempt {
            operation: 0,
            at: SECOND,
            number: 2,
            stands_in: false,
            is_hedge: false,
        };
        50
    ];
    assert!(
        check(&storm)[0].contains("50 retries and hedges of 1 calls"),
        "{:?}",
        check(&storm)
    );
}
