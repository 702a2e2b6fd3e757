//! Checks of replies from a fallback step against the tool that was called.

use std::time::Duration;

use raw_json::RawJson;
use serde_json::Value;
use tool_core::{CallContext, Degraded, Reply, Tool};

use crate::CacheLayer;

/// Returns the default from the configuration, if the tool could have returned it.
pub(super) fn default_reply(cx: &CallContext, value: &RawJson) -> Result<Reply, String> {
    let reply = Reply::value(value.clone());
    check_output(cx.tool(), &reply).map_err(|mismatch| format!("it {mismatch}"))?;
    Ok(reply)
}

/// Checks a reply against the output schema of a tool that did not send it. The error continues a sentence about the reply.
pub(super) fn check_output(tool: &Tool, reply: &Reply) -> Result<(), String> {
    let Some(output) = tool.output() else {
        return Ok(());
    };
    let name = tool.name();
    let mismatch = || format!("does not fit the output schema of `{name}`");
    let structured = reply.structured().ok_or_else(mismatch)?;
    let value: Value = structured.to().map_err(|_| mismatch())?;
    output.check(&value).map_err(|_| mismatch())
}

/// Returns the age of a reply, as caches recorded it in its `_meta`.
pub(super) fn age_in_meta(meta: &[(&'static str, RawJson)]) -> Duration {
    let ages = meta.iter().filter_map(|(key, value)| {
        let has_age = [CacheLayer::META_KEY, Degraded::META_KEY].contains(key);
        value.get("age_ms").filter(|_| has_age)?.to::<u64>().ok()
    });
    Duration::from_millis(ages.max().unwrap_or_default())
}
