//! Deterministic simulation: clients call tools through the standard stack, in a world with seeded refusals, lost
//! answers, hangs and outages. The runtime's clock is paused and advances only when nothing is left to do, so an hour
//! of faults takes milliseconds, and the same seed gives the same history, byte by byte. Afterwards the history is
//! checked: each call had one result, also by a route or as a step of a workflow, no tool ran twice that must not, no caller received a false answer, stale answers
//! were allowed and marked, and nothing leaked.
//!
//! The method is that of [FoundationDB](https://apple.github.io/foundationdb/testing.html) and TigerBeetle; the unknown
//! outcome as a separate result is [Jepsen](https://jepsen.io)'s.
//!
//! # Examples
//!
//! ```
//! let report = toolplane_sim::run(7);
//! assert!(report.violations.is_empty(), "{:?}\n{}", report.violations, report.history);
//! ```

mod check;
mod client;
mod faults;
mod record;
mod simulation;
mod world;

pub use self::{
    check::check,
    record::{
        AttemptEnd, AttemptRecord, CallRecord, CallResult, FlowRecord, FlowResult, OperationRecord,
        ReceivedAnswer, ReplyFreshness, SimulationRecord,
    },
    simulation::{SimulationReport, run},
};
