//! A simulation: clients call tools through the standard stack, in a world that refuses, loses answers, hangs and has
//! outages, as a seed says. Time is the runtime's and stands still while there is something to do, so an hour of faults takes
//! milliseconds, and the same seed gives the same history, byte by byte. Afterwards the history is checked: each call came
//! out in one way, nothing was done twice that must not be, no caller was told something that is not so, an old answer was
//! given only where it may be and said so, and nothing leaked.
//!
//! The method is that of [FoundationDB](https://apple.github.io/foundationdb/testing.html) and TigerBeetle; that an unknown
//! outcome is a result of its own is [Jepsen](https://jepsen.io)'s.
//!
//! ```
//! let run = toolplane_sim::run(7);
//! assert!(run.violations.is_empty(), "{:?}\n{}", run.violations, run.history);
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
        AttemptEnd, AttemptRecord, CallRecord, CallResult, OperationRecord, ReceivedAnswer, ReplyFreshness,
        SimulationRecord,
    },
    simulation::{SimulationReport, run},
};
