//! States of a source, and the transitions between them.

use std::time::Duration;

use tool_core::{Instant, Lifecycle, SourceState};

fn at(seconds: u64) -> Instant {
    Instant::since_start(Duration::from_secs(seconds))
}

fn failed(reason: &str) -> SourceState {
    SourceState::Failed(reason.to_owned())
}

#[test]
fn tries_are_counted_until_one_makes_it_ready() {
    let mut life = Lifecycle::new("files", at(0));
    assert_eq!(life.state(), &SourceState::NotStarted);
    assert_eq!(life.status(at(9)).in_state, Some(Duration::from_secs(9)));
    let steps = [
        (10, SourceState::Starting, 1),
        (12, failed("no license"), 1),
        (20, SourceState::Starting, 2),
        (21, SourceState::Ready, 2),
        (50, failed("it has ended"), 0),
        (51, SourceState::Starting, 1),
        (52, SourceState::Ready, 1),
        (55, SourceState::Stopped, 0),
        (56, SourceState::Starting, 1),
        (57, SourceState::Ready, 1),
    ];
    let mut before = (0, SourceState::NotStarted);
    for (second, state, n_attempts) in steps {
        let change = life
            .enter(state.clone(), at(second))
            .expect("it is another state");
        assert_eq!((&*change.source, change.n_attempts), ("files", n_attempts));
        assert_eq!((&change.from, &change.to), (&before.1, &state));
        assert_eq!(change.after, Duration::from_secs(second - before.0));
        before = (second, state);
    }
    let status = life.status(at(60));
    assert_eq!(status.state, SourceState::Ready);
    assert_eq!(status.in_state, Some(Duration::from_secs(3)));
    assert_eq!(
        (status.n_attempts, status.last_error.as_deref()),
        (1, Some("it has ended"))
    );
}

#[test]
fn another_reason_is_no_change_and_takes_the_place_of_the_one_before() {
    let mut life = Lifecycle::new("files", at(0));
    let change = life.enter(failed("`TOKEN` is not set"), at(1));
    assert_eq!(change.expect("it was not started").n_attempts, 1);
    assert_eq!(life.enter(failed("`KEY` is not set"), at(5)), None);
    let status = life.status(at(6));
    assert_eq!(status.state, failed("`KEY` is not set"));
    assert_eq!(
        status.in_state,
        Some(Duration::from_secs(5)),
        "since it has failed"
    );
    assert_eq!(life.enter(failed("`KEY` is not set"), at(7)), None);
}

/// Tests every sequence of events.
#[test]
fn no_way_leads_astray() {
    let states = [
        SourceState::NotStarted,
        SourceState::Starting,
        SourceState::Ready,
        failed("x"),
        SourceState::Stopped,
    ];
    let n_ways = states.len().pow(5);
    for way in 0..n_ways {
        let mut life = Lifecycle::new("files", at(0));
        let mut left = way;
        for second in 1..=5 {
            let state = states[left % states.len()].clone();
            left /= states.len();
            let before = life.state().clone();
            let change = life.enter(state.clone(), at(second));
            assert_eq!(change.is_some(), before != state, "{way}: {before} to {state}");
            assert_eq!(life.state(), &state);
            let status = life.status(at(second));
            if state == SourceState::Starting {
                assert!((1..=3).contains(&status.n_attempts), "{way}: {status:?}");
            }
            if change.is_some() {
                assert_eq!(status.in_state, Some(Duration::ZERO));
            }
        }
    }
}
