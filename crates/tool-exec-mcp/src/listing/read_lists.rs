//! Reading of a server's lists.

use std::time::Duration;

use futures_util::future::join_all;
use mcp_client::{ChangeCounts, ClientError, Connection, ListResult, ListTruncation};
use mcp_wire::{code, method};
use raw_json::RawJson;
use tool_core::{Feature, ListLimits, ListWarning, Secrets, format_duration};

/// Result of reading one list.
pub(crate) type FeatureList = (Feature, Result<ListResult, String>);

/// Reads these lists concurrently, each within its time limit. A list that the server does not offer is empty.
pub(crate) async fn read_lists(
    connection: &Connection,
    features: &[Feature],
    limits: &ListLimits,
    limit: impl Fn(Feature) -> Duration,
) -> Vec<FeatureList> {
    let lists = features.iter().map(|&feature| {
        let limit = limit(feature);
        async move { (feature, read_one(connection, feature, limits, limit).await) }
    });
    join_all(lists).await
}

/// Hides the secrets that are known so far in the entries of a list. All lists pass it on the way to displays and
/// caches.
pub(crate) fn hide_secrets(entries: Vec<RawJson>, secrets: &dyn Secrets) -> Vec<RawJson> {
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
    let limits = mcp_client::PageLimits::default()
        .pages(limits.pages)
        .entries(limits.entries(feature))
        .bytes(limits.bytes);
    let listing = connection.list_partial(method, key, limits);
    match tokio::time::timeout(limit, listing).await {
        Ok(Ok(list)) => Ok(list),
        // A server with resources need not have templates. A method that the server does not know is not called again.
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

/// Returns the warning that a list was not read to its end.
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
    ListWarning::new(Some(feature), None, kind, message)
}

/// Returns the capability under which a server offers the feature.
pub(crate) fn list_capability(feature: Feature) -> Option<&'static str> {
    list_of(feature).map(|(capability, ..)| capability)
}

/// Returns the capability under which a server offers the feature, the method that lists it, and the member of the
/// result.
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

/// Returns the lists that have changed between two counts of changes.
pub(crate) fn changed_lists(before: ChangeCounts, now: ChangeCounts) -> Vec<Feature> {
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
