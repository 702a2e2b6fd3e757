//! Routes: tools that name a capability instead of a tool. Each call goes to the tool that is best for it now.
//!
//! A route is data, as every tool: the settings of [`RouteExecutor`]. Its candidates are the tools with its capability, of
//! whatever source. They are scored by health, latency, cost, capabilities and permission; the best is called as itself, through
//! the whole stack. If it fails and nothing may have run, the next one is called.
//!
//! | part | where |
//! |---|---|
//! | a definition, and how it is read | `definition` |
//! | figures of tools: what routes measure themselves | `figures` |
//! | candidates of a route, their scores, and the choice | `candidates`, `score`, `choice` |
//! | what is told about a choice | [`RouteReport`] |
//! | the call | [`RouteExecutor`] |

mod call;
mod candidates;
mod choice;
mod definition;
mod executor;
mod figures;
mod report;
mod schema;
mod score;

pub use raw_json::{self, RawJson};
pub use serde_json;
pub use tool_core;

pub use self::{
    candidates::{Obstacle, RouteTools},
    definition::{RouteDefinition, RoutePriority, RouteWeights, WantedTools},
    executor::{RouteExecutor, Router},
    report::{CandidateReport, RouteReport},
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
