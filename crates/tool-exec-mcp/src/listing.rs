//! What a server lists.

use std::time::Duration;

use futures_util::future::join_all;
use mcp_client::{ChangeCounts, ClientError, Connection, ListTruncation, ListResult};
use mcp_wire::{code, method};
use raw_json::RawJson;
use tool_core::{Feature, ListLimits, ListWarning, Secrets, format_duration};

/// What came of reading one list.
pub(crate) type Read = (Feature, Result<ListResult, String>);

/// Reads these lists at the same time, each within its limit. A list of something that the server does not offer is
/// empty.
pub(crate) async fn read(
    connection: &Connection,
    features: &[Feature],
    limits: &ListLimits,
    limit: impl Fn(Feature) -> Duration,
) -> Vec<Read> {
    let lists = features.iter().map(|&feature| {
        let limit = limit(feature);
        async move { (feature, read_one(connection, feature, limits, limit).await) }
    });
    join_all(lists).await
}

/// The entries of a list without the secrets that are known so far: the one way from a server's lists to whatever shows or
/// keeps them.
pub(crate) fn without_secrets(entries: Vec<RawJson>, secrets: &dyn Secrets) -> Vec<RawJson> {
    let entries = entries.into_iter();
    entries
        .map(|entry| secrets.hide_in_json(&entry).unwrap_or(entry))
        .collect()
}

async fn read_one(
    connection: &Connection,
    feature: Feature,
    limits: &ListLimits,
    limit: Duration,
) -> Result<ListResult, String> {
    let Some((capability, method, key)) = list_of(feature) else {
        return Ok(ListResult::default());
    };
    if !connection.server().has_capability(capability) {
        return Ok(ListResult::default());
    }
    let limits = mcp_client::PageLimits {
        pages: limits.pages,
        entries: limits.entries(feature),
        bytes: limits.bytes,
        ..mcp_client::PageLimits::default()
    };
    let listing = connection.list_partial(method, key, limits);
    match tokio::time::timeout(limit, listing).await {
        Ok(Ok(list)) => Ok(list),
        // A server with resources need not have templates of them, and none is asked again for what it does not know.
        Ok(Err(error)) if feature != Feature::Tool && is_unknown_method(&error) => {
            if feature != Feature::ResourceTemplate {
                tracing::warn!("a server declares `{capability}` and does not know `{method}`");
            }
            Ok(ListResult::default())
        }
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {}", format_duration(limit))),
    }
}

/// The warning that a list was not read to its end.
pub(crate) fn cut_warning(feature: Feature, cut: ListTruncation, limits: &ListLimits) -> ListWarning {
    let key = match feature {
        Feature::Tool => "tools",
        Feature::Prompt => "prompts",
        _ => "resources",
    };
    let left_out = "the rest is left out";
    let (kind, message) = match cut {
        ListTruncation::Entries => {
            let allowed = limits.entries(feature);
            (
                "too_many_entries",
                format!("it has more than {allowed} entries (`list_limits.{key}`); {left_out}"),
            )
        }
        ListTruncation::Bytes => {
            let allowed = limits.bytes;
            (
                "too_many_bytes",
                format!("it has more than {allowed} bytes (`list_limits.bytes`); {left_out}"),
            )
        }
        ListTruncation::Pages => {
            let allowed = limits.pages;
            (
                "too_many_pages",
                format!("it has more than {allowed} pages (`list_limits.pages`); {left_out}"),
            )
        }
        ListTruncation::RepeatedCursor => (
            "repeated_cursor",
            format!("the server gave a page's cursor twice; {left_out}"),
        ),
        _ => ("cut", format!("it was not read to its end; {left_out}")),
    };
    ListWarning {
        feature: Some(feature),
        name: None,
        kind,
        message,
    }
}

/// The capability under which a server offers the feature.
pub(crate) fn capability(feature: Feature) -> Option<&'static str> {
    list_of(feature).map(|(capability, ..)| capability)
}

/// The capability under which a server offers the feature, and how it is listed.
fn list_of(feature: Feature) -> Option<(&'static str, &'static str, &'static str)> {
    match feature {
        Feature::Tool => Some(("tools", method::TOOLS_LIST, "tools")),
        Feature::Prompt => Some(("prompts", method::PROMPTS_LIST, "prompts")),
        Feature::Resource => Some(("resources", method::RESOURCES_LIST, "resources")),
        Feature::ResourceTemplate => {
            Some(("resources", method::RESOURCES_TEMPLATES_LIST, "resourceTemplates"))
        }
        _ => None,
    }
}

fn is_unknown_method(error: &ClientError) -> bool {
    error
        .as_rpc()
        .is_some_and(|error| error.code == code::METHOD_NOT_FOUND)
}

/// The lists that have changed from one count of changes to the next.
pub(crate) fn changed(before: ChangeCounts, now: ChangeCounts) -> Vec<Feature> {
    let mut changed = Vec::new();
    if now.tools != before.tools {
        changed.push(Feature::Tool);
    }
    if now.prompts != before.prompts {
        changed.push(Feature::Prompt);
    }
    if now.resources != before.resources {
        changed.extend([Feature::Resource, Feature::ResourceTemplate]);
    }
    changed
}
