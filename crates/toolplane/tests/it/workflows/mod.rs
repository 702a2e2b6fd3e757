//! Workflows in the standard stack, with scripted tools.

mod agents;
mod durable;
mod failures;
mod order;
mod rounds;
mod seen;
mod values;

use serde_json::Value;
use toolplane::core::{Reply, ToolError};

use crate::world::{World, failed, failure, reply, request, value};

/// Returns step and status of each record, in the order in which they ended.
fn statuses(summary: &Value) -> Vec<(String, String)> {
    let steps = summary["steps"].as_array().expect("it is there").iter();
    let text = |value: &Value| value.as_str().expect("it is there").to_owned();
    steps
        .map(|step| (text(&step["step"]), text(&step["status"])))
        .collect()
}

/// Returns the summary of a completed run.
fn summary(reply: &Reply) -> Value {
    let (_, summary) = reply
        .meta()
        .iter()
        .find(|(key, _)| *key == "dev.toolplane/workflow")
        .expect("it has a summary");
    summary.to().expect("it is there")
}

/// Returns the summary of a run that failed.
fn failed_summary(error: &ToolError) -> Value {
    error
        .detail()
        .expect("it is there")
        .get("workflow")
        .expect("it is there")
        .to()
        .expect("it is there")
}
