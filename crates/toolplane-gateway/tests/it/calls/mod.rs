//! Calls of tools, prompts and resources, and their approval.

mod approvals;
mod other_features;
mod tools;
