//! Command endpoints: as sources of tools, and `toolplane endpoint` as one.

mod sources;
mod verb;

use serde_json::Value;

/// Returns the names of listed tools.
fn names(listed: &Value) -> Vec<&str> {
    let tools = listed["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}
