//! Attempt history of a call, against a model that keeps all attempts in a list.

use std::sync::Arc;

use tool_core::{CallContext, Dispatch, ErrorKind, FallbackOf, Metadata, SideEffect, Tool, Trust};

use crate::context::{call, tool};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    None,
    Sent,
    Answered,
    NotTaken,
}

const MARKS: [Mark; 4] = [Mark::None, Mark::Sent, Mark::Answered, Mark::NotTaken];

#[derive(Debug, Clone, Copy)]
enum Step {
    /// Another attempt.
    Attempt(Mark),
    /// Attempt in forked work, which then continues as the call.
    Fork(Mark),
    /// Hedged attempt that loses.
    Hedge(Mark),
    /// Shared work that the call waits for.
    Followed(Mark),
    /// Call of a fallback, which may run twice or not.
    Fallback(bool, Mark),
}

fn steps() -> Vec<Step> {
    MARKS
        .into_iter()
        .flat_map(|mark| {
            [
                Step::Attempt(mark),
                Step::Fork(mark),
                Step::Hedge(mark),
                Step::Followed(mark),
                Step::Fallback(true, mark),
                Step::Fallback(false, mark),
            ]
        })
        .collect()
}

impl Mark {
    fn set(self, dispatch: &Dispatch) {
        match self {
            Self::None => {}
            Self::Sent => dispatch.sent(),
            Self::Answered => dispatch.answered(),
            Self::NotTaken => dispatch.not_taken(),
        }
    }

    fn is_taken(self) -> bool {
        matches!(self, Self::Sent | Self::Answered)
    }
}

/// All steps, and the rule in words: see `CallContext::may_have_run`.
struct Model {
    may_run_twice: bool,
    own: Vec<Mark>,
    followed: Mark,
    /// Marks of fallbacks that must run at most once.
    fallbacks: Vec<Mark>,
}

impl Model {
    fn add(&mut self, step: Step) {
        match step {
            Step::Attempt(mark) | Step::Fork(mark) | Step::Hedge(mark) => self.own.push(mark),
            Step::Followed(mark) => self.followed = mark,
            Step::Fallback(true, _) => {}
            Step::Fallback(false, mark) => self.fallbacks.push(mark),
        }
    }

    fn has_fallback_run(&self) -> bool {
        self.fallbacks.iter().any(|mark| mark.is_taken())
    }

    fn may_have_run(&self) -> bool {
        let is_taken = self.own.iter().any(|mark| mark.is_taken()) || self.followed.is_taken();
        self.has_fallback_run() || is_taken && !self.may_run_twice
    }

    fn is_unknown(&self) -> bool {
        let must_run_once = !self.may_run_twice || self.has_fallback_run();
        self.fallbacks.contains(&Mark::Sent) || self.own.contains(&Mark::Sent) && must_run_once
    }
}

fn act(cx: &mut CallContext, step: Step, repeatable: &Arc<Tool>, once: &Arc<Tool>) {
    match step {
        Step::Attempt(mark) => {
            cx.next_attempt();
            mark.set(cx.dispatch());
        }
        Step::Fork(mark) => {
            let mut fork = cx.fork();
            fork.next_attempt();
            mark.set(fork.dispatch());
            cx.merge_fork(fork);
        }
        Step::Hedge(mark) => {
            let hedge = cx.fork();
            mark.set(hedge.dispatch());
            cx.merge_hedge(hedge);
        }
        Step::Followed(mark) => {
            let (other, _) = call(once.clone());
            mark.set(other.dispatch());
            cx.follow(other.history().clone());
        }
        Step::Fallback(may_run_twice, mark) => {
            let tool = if may_run_twice { repeatable } else { once };
            let fallback = cx.fork_fallback(tool.clone(), FallbackOf::new("first".into(), false));
            mark.set(fallback.dispatch());
            cx.merge_fallback(fallback);
        }
    }
}

#[test]
fn every_sequence_of_steps_is_judged_as_the_model_judges_it() {
    let mut declared = Metadata::default();
    declared.idempotent = Some(true);
    let repeatable = tool(Trust::Operator, declared);
    let once = tool(Trust::Operator, Metadata::default());
    let steps = steps();
    for may_run_twice in [true, false] {
        for sequence in 0..steps.len().pow(3) {
            let called = if may_run_twice { &repeatable } else { &once };
            let (mut cx, _) = call(called.clone());
            let mut model = Model {
                may_run_twice,
                own: Vec::new(),
                followed: Mark::None,
                fallbacks: Vec::new(),
            };
            for place in 0..3 {
                let step = steps[sequence / steps.len().pow(place) % steps.len()];
                act(&mut cx, step, &repeatable, &once);
                model.add(step);
                let expected = match (model.may_have_run(), model.is_unknown()) {
                    (_, true) => SideEffect::Unknown,
                    (true, false) => SideEffect::Possible,
                    (false, false) => SideEffect::Impossible,
                };
                assert_eq!(cx.side_effect(), expected, "{sequence} {place} {step:?}");
                assert_eq!(cx.may_have_run(), model.may_have_run());
                assert_eq!(cx.may_run_twice(), may_run_twice && !model.has_fallback_run());
                let error = cx.unanswered(ErrorKind::Timeout, "no answer");
                assert_eq!(error.kind() == ErrorKind::OutcomeUnknown, model.is_unknown());
            }
        }
    }
}
