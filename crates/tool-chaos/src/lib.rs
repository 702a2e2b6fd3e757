//! Faults on purpose. [`ChaosLayer`] is a layer that stands right before what runs a tool and has attempts fail, wait or
//! come back with half an answer, as a [`ChaosPlan`] says: to see what becomes of calls before the world does it.
//!
//! The same plan gives the same faults: what happens to the n-th attempt of a tool depends on the seed, the tool's name
//! and n alone, not on threads or time.
//!
//! ```
//! use tool_chaos::{Chaos, ChaosPlan, ChaosRule};
//!
//! let mut rule = ChaosRule::default();
//! rule.failure_rate = 0.2;
//! let chaos = Chaos::new(ChaosPlan::new(42, [rule]));
//! assert_eq!(chaos.plan().unwrap().fate("weather", 7), chaos.plan().unwrap().fate("weather", 7));
//! ```

mod chaos;
mod fault;
mod partial;
mod plan;

pub use self::{
    chaos::{Chaos, ChaosLayer},
    fault::InjectedFault,
    plan::{ChaosPlan, ChaosRule, Fate, Latency},
};
