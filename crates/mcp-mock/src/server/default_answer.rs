//! Answers of a well-behaved server.

use mcp_server::{Answer, RequestContext, unknown_method};
use mcp_wire::{Era, Request, RpcError, code, method};
use raw_json::RawJson;

use crate::{
    reply::plan::ReplyPlan,
    server::{
        catalog::{CatalogEntry, FeatureKind},
        result_shapes,
        state::State,
    },
};

pub(crate) fn answer(
    state: &State,
    plan: &ReplyPlan,
    request: &Request,
    cx: &RequestContext,
) -> Result<Answer, RpcError> {
    let about = plan.entry.as_deref();
    let said = |text: &str| result_shapes::text(request, about, text, cx.era());
    let arguments = || cx.arguments().cloned().unwrap_or(RawJson::object());
    let list = |key, kind| list(state, request, key, kind, cx.era());
    match (&*request.method, about) {
        (method::TOOLS_LIST, _) => list("tools", FeatureKind::Tool),
        (method::PROMPTS_LIST, _) => list("prompts", FeatureKind::Prompt),
        (method::RESOURCES_LIST, _) => list("resources", FeatureKind::Resource),
        (method::RESOURCES_TEMPLATES_LIST, _) => list("resourceTemplates", FeatureKind::Template),
        (method::TOOLS_CALL | method::PROMPTS_GET, Some(_)) => said(arguments().as_str()),
        (method::RESOURCES_READ, Some(_)) => said(&cx.uri().unwrap_or_default()),
        (method::TOOLS_CALL, None) => Err(unknown("tool", &cx.name().unwrap_or_default())),
        (method::PROMPTS_GET, None) => Err(unknown("prompt", &cx.name().unwrap_or_default())),
        (method::RESOURCES_READ, None) => Err(unknown("resource", &cx.uri().unwrap_or_default())),
        (method::COMPLETION_COMPLETE, _) => Ok(completion(state, request)),
        (method::RESOURCES_SUBSCRIBE | method::RESOURCES_UNSUBSCRIBE, _) => Ok(RawJson::object().into()),
        (other, _) => Err(unknown_method(other)),
    }
}

fn unknown(what: &str, name: &str) -> RpcError {
    RpcError::new(code::INVALID_PARAMS, format!("there is no {what} `{name}`"))
}

/// Returns a page of a list; its cursor is the index of the next page's first entry.
fn list(
    state: &State,
    request: &Request,
    key: &str,
    kind: FeatureKind,
    era: Era,
) -> Result<Answer, RpcError> {
    let cursor = request.params.as_ref().and_then(|params| params.get("cursor"));
    let start = match cursor {
        None => 0,
        Some(cursor) => {
            let index = cursor.string().and_then(|cursor| cursor.parse::<usize>().ok());
            index.ok_or_else(|| RpcError::new(code::INVALID_PARAMS, "the cursor is unknown"))?
        }
    };
    let listed = state.catalog.listed(kind);
    let end = start.saturating_add(state.page_size.unwrap_or(usize::MAX));
    let page = listed.get(start..end.min(listed.len())).unwrap_or_default();
    let page = RawJson::from_serialize(page).expect("JSON can be written");
    let mut members = vec![(key, page)];
    if end < listed.len() {
        members.push(("nextCursor", RawJson::from(end.to_string().as_str())));
    }
    let result = RawJson::object().with_members(&members);
    let result = result.expect("an empty object is an object");
    Ok(result_shapes::cacheable(result, era).into())
}

/// Returns the offered values that begin with the typed text.
fn completion(state: &State, request: &Request) -> Answer {
    let text = |parent: &str, key: &str| -> Option<String> {
        request.params.as_ref()?.get(parent)?.get(key)?.string()
    };
    let entry = text("ref", "name")
        .and_then(|name| state.catalog.find(FeatureKind::Prompt, &name))
        .or_else(|| state.catalog.find(FeatureKind::Template, &text("ref", "uri")?));
    let argument = text("argument", "name").unwrap_or_default();
    let typed = text("argument", "value").unwrap_or_default();
    let values: Vec<String> = entry.map_or_else(Vec::new, |entry| completions(&entry, &argument, &typed));
    let total = values.len();
    let shown = RawJson::from_serialize(&values[..total.min(MOST_VALUES)]).expect("texts can be written");
    let completion = RawJson::from_members(&[
        ("total", RawJson::from(total as u64)),
        ("hasMore", RawJson::from(total > MOST_VALUES)),
        ("values", shown),
    ]);
    RawJson::from_members(&[("completion", completion)]).into()
}

/// Maximum number of values in an answer (MCP, completion).
const MOST_VALUES: usize = 100;

fn completions(entry: &CatalogEntry, argument: &str, typed: &str) -> Vec<String> {
    let offered = entry.completions.iter().filter(|(name, _)| name == argument);
    let values = offered.flat_map(|(_, values)| values);
    values.filter(|value| value.starts_with(typed)).cloned().collect()
}
