//! State machine of an approval: what follows for a call from the state of its approval and an event.

use tool_core::ApprovalState;

/// Event in the life of a call that needs approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApprovalEvent {
    /// The caller makes the call, for the first time or again.
    Called,
    /// The user at the client approved the call.
    Accepted,
    /// The user at the client did not approve the call.
    Declined,
    /// The caller continues with this round, after a question of the tool.
    Continued { round: u32 },
    /// The tool asks for input before it goes on.
    InputNeeded,
    /// The call ended while the tool is still at work: the same call gets its result later.
    Unfinished,
    /// The call failed, and no attempt was sent.
    NotSent,
    /// The call ended in any other way.
    Finished,
}

/// Stage of a call that needs approval: the step that comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Asks the user at the client, or else leaves the decision to the desk.
    Ask,
    /// Claims the approval for this round of the call, and runs it.
    Run { round: u32 },
    /// Ends the approval, and refuses the call.
    Decline,
    /// Refuses the call. The approval stays as it is.
    Refuse,
    /// Keeps the approval for this round of the call.
    Wait { round: u32 },
    /// Returns the approval, so that the same call needs no other one.
    Return,
    /// Ends the approval: it is used up.
    End,
}

/// Returns the stage that follows from the state of an approval and an event.
///
/// | state \ event | called | accepted | declined | continued *n* | input needed | unfinished | not sent | finished |
/// |---|---|---|---|---|---|---|---|---|
/// | pending, asked | ask | run 0 | decline | refuse | - | - | - | - |
/// | approved | run 0 | run 0 | decline | refuse | - | - | - | - |
/// | denied | refuse | refuse | refuse | refuse | - | - | - | - |
/// | running *r* | refuse | refuse | refuse | refuse | wait *r* + 1 | return | return if *r* = 0, else end | end |
/// | waiting *r* | refuse | refuse | refuse | run *n* if *n* = *r*, else refuse | - | - | - | - |
/// | ended | refuse | refuse | refuse | refuse | - | - | - | - |
///
/// The last four events occur only while the call runs; in any other state they end the approval.
///
/// Approved and declined at once: the desk approved while the user at the client decided. Either of them may prevent the call.
/// A call that fails before any attempt was sent returns the approval only in its first round: in a later one, the tool has
/// already begun.
pub(super) fn next(state: &ApprovalState, event: ApprovalEvent) -> Stage {
    use ApprovalEvent::{Accepted, Called, Continued, Declined, Finished, InputNeeded, NotSent, Unfinished};
    use ApprovalState::{Approved, Asked, Pending, Running, Waiting};
    match (state, event) {
        (Pending | Asked, Called) => Stage::Ask,
        (Approved { .. }, Called) | (Pending | Asked | Approved { .. }, Accepted) => Stage::Run { round: 0 },
        (Pending | Asked | Approved { .. }, Declined) => Stage::Decline,
        (Waiting { round }, Continued { round: continued }) if *round == continued => {
            Stage::Run { round: continued }
        }
        (_, Called | Accepted | Declined | Continued { .. }) => Stage::Refuse,
        (Running { round }, InputNeeded) => Stage::Wait { round: round + 1 },
        (Running { .. }, Unfinished) | (Running { round: 0 }, NotSent) => Stage::Return,
        (_, InputNeeded | Unfinished | NotSent | Finished) => Stage::End,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_holds_in_every_state() {
        use ApprovalEvent::{
            Accepted, Called, Continued, Declined, Finished, InputNeeded, NotSent, Unfinished,
        };
        use Stage::{Ask, Decline, End, Refuse, Return, Run, Wait};
        let by = || "ann".into();
        let run = Run { round: 0 };
        let events = [
            Called,
            Accepted,
            Declined,
            Continued { round: 1 },
            InputNeeded,
            Unfinished,
            NotSent,
            Finished,
        ];
        for (state, expected) in [
            (
                ApprovalState::Pending,
                [Ask, run, Decline, Refuse, End, End, End, End],
            ),
            (
                ApprovalState::Asked,
                [Ask, run, Decline, Refuse, End, End, End, End],
            ),
            (
                ApprovalState::Approved { by: by() },
                [run, run, Decline, Refuse, End, End, End, End],
            ),
            (
                ApprovalState::Denied {
                    by: by(),
                    reason: None,
                },
                [Refuse, Refuse, Refuse, Refuse, End, End, End, End],
            ),
            (
                ApprovalState::Running { round: 0 },
                [
                    Refuse,
                    Refuse,
                    Refuse,
                    Refuse,
                    Wait { round: 1 },
                    Return,
                    Return,
                    End,
                ],
            ),
            (
                ApprovalState::Running { round: 1 },
                [
                    Refuse,
                    Refuse,
                    Refuse,
                    Refuse,
                    Wait { round: 2 },
                    Return,
                    End,
                    End,
                ],
            ),
            (
                ApprovalState::Waiting { round: 1 },
                [Refuse, Refuse, Refuse, Run { round: 1 }, End, End, End, End],
            ),
            (
                ApprovalState::Waiting { round: 2 },
                [Refuse, Refuse, Refuse, Refuse, End, End, End, End],
            ),
            (
                ApprovalState::Ended,
                [Refuse, Refuse, Refuse, Refuse, End, End, End, End],
            ),
        ] {
            assert_eq!(events.map(|event| next(&state, event)), expected, "{state:?}");
        }
    }
}
