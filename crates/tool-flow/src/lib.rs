//! Workflows: tools that are made of steps, each a call of another tool through the whole stack.
//!
//! A workflow is data, as every tool: the settings of [`WorkflowExecutor`]. Its steps call tools, run side by side, take one of two
//! branches, or work on each item of a list. They refer to the input and to results of other steps, which gives their order.
//!
//! | part | where |
//! |---|---|
//! | a definition, and how it is read | `definition` |
//! | references, and expressions in CEL | the crate `tool-mapping` |
//! | checks before it runs | `check`: [`check_workflow`] against the tools that it calls |
//! | a run: order, calls, records, state between rounds | `run` |
//! | its picture | [`workflow_graph`] |

mod check;
mod definition;
mod executor;
mod graph;
mod memory;
mod run;
mod schema;

pub use raw_json::{self, RawJson};
pub use serde_json;
pub use tool_core;

pub use self::{
    check::against::{StepTool, WorkflowProblem, check_workflow},
    definition::StepRetry,
    executor::{RetryOverrides, WorkflowExecutor},
    graph::{GraphFormat, workflow_graph},
    memory::MemoryFlows,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
