use jsonschema::Draft;
use serde_json::Value;

/// Returns the draft that a schema names by `$schema`, or the newest if it names none. Returns `None` for an unknown draft.
pub(crate) fn draft_of(schema: &Value) -> Option<Draft> {
    let Some(uri) = schema.get("$schema") else {
        return Some(Draft::Draft202012);
    };
    // Authors write `http` and `https`, with and without the empty fragment.
    let uri = uri.as_str()?.trim_end_matches('#').trim_end_matches('/');
    let name = uri
        .strip_prefix("https://")
        .or_else(|| uri.strip_prefix("http://"))?
        .strip_prefix("json-schema.org/")?;
    match name {
        "draft-04/schema" => Some(Draft::Draft4),
        "draft-06/schema" => Some(Draft::Draft6),
        "draft-07/schema" => Some(Draft::Draft7),
        "draft/2019-09/schema" => Some(Draft::Draft201909),
        // The URI without a draft means the newest one.
        "draft/2020-12/schema" | "schema" => Some(Draft::Draft202012),
        _ => None,
    }
}
