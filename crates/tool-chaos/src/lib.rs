//! Chaos engineering: faults on purpose. [`ChaosLayer`] stands right before a tool's backend. It delays attempts, makes them fail
//! or cuts their replies in half, as a [`ChaosPlan`] says, so that one sees how calls behave before a real fault occurs.
//!
//! Injection is deterministic: the injection for the n-th attempt of a tool depends only on the seed, the tool's name
//! and n, not on threads or time.
//!
//! # Examples
//! ```
//! use tool_chaos::{ChaosLayer, ChaosPlan, ChaosRule};
//!
//! let mut rule = ChaosRule::default();
//! rule.failure_rate = 0.2;
//! let chaos = ChaosLayer::new(ChaosPlan::new(42, [rule]));
//! let plan = chaos.plan().unwrap();
//! assert_eq!(plan.injection("weather", 7), plan.injection("weather", 7));
//! ```

mod injected_fault;
mod layer;
mod partial_reply;
mod plan;

pub use self::{
    injected_fault::InjectedFault,
    layer::{Chaos, ChaosLayer},
    plan::{ChaosPlan, ChaosRule, InjectedLatency, Injection},
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
