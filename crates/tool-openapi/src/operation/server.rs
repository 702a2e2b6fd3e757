use serde_json::{Map, Value};
use url::Url;

use super::Operation;
use crate::{
    OpenApiError,
    document::{Document, Version},
};

/// Returns the URL before the path of an operation, without a slash at its end.
pub(crate) fn base_url(document: &Document, operation: &Operation<'_>) -> Result<String, String> {
    if document.version == Version::Swagger2 {
        return swagger_url(document, operation);
    }
    let of = |value: Option<&Value>| {
        let servers = value.and_then(Value::as_array);
        servers.and_then(|servers| servers.first()).cloned()
    };
    let server = of(operation.value.get("servers"))
        .or_else(|| of(operation.item.get("servers")))
        .or_else(|| of(document.get("servers")));
    let Some(server) = server else {
        return Err(no_server("the document names no server"));
    };
    let template = server.get("url").and_then(Value::as_str).unwrap_or_default();
    let variables = server.get("variables").and_then(Value::as_object);
    checked(&substitute(template, variables)?)
}

/// Checks the URL of `--server`.
pub(crate) fn checked_option(url: &str) -> Result<String, OpenApiError> {
    checked(url).map_err(|reason| {
        OpenApiError::new(reason).with_hint("give a URL such as `https://api.example.com/v1`")
    })
}

fn no_server(reason: &str) -> String {
    format!("{reason}; give its URL with `--server`")
}

/// Puts the default of each variable into a URL template.
fn substitute(template: &str, variables: Option<&Map<String, Value>>) -> Result<String, String> {
    let mut url = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, tail)) = after.split_once('}') else {
            break;
        };
        let variable = variables.and_then(|variables| variables.get(name));
        let first = variable.and_then(|variable| variable.get("enum")?.as_array()?.first());
        let value = variable.and_then(|variable| variable.get("default")).or(first);
        let Some(value) = value.filter(|value| !value.is_null()) else {
            let name = name.escape_debug();
            return Err(no_server(&format!(
                "the variable `{name}` of the server has no default"
            )));
        };
        url.push_str(before);
        match value {
            Value::String(text) => url.push_str(text),
            other => url.push_str(&other.to_string()),
        }
        rest = tail;
    }
    url.push_str(rest);
    Ok(url)
}

fn swagger_url(document: &Document, operation: &Operation<'_>) -> Result<String, String> {
    let text = |key| document.get(key).and_then(Value::as_str).unwrap_or_default();
    let Some(host) = Some(text("host")).filter(|host| !host.is_empty()) else {
        return Err(no_server("the document names no host"));
    };
    let schemes = operation.value.get("schemes").or_else(|| document.get("schemes"));
    let schemes: Vec<&str> = schemes
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let scheme = match schemes.as_slice() {
        [] => "https",
        given => ["https", "http"]
            .into_iter()
            .find(|scheme| given.contains(scheme))
            .ok_or_else(|| no_server("the host offers neither `https` nor `http`"))?,
    };
    let base = text("basePath").trim_start_matches('/');
    checked(&format!("{scheme}://{host}/{base}"))
}

fn checked(url: &str) -> Result<String, String> {
    let shown: String = url.chars().take(200).collect();
    let shown = shown.escape_debug();
    let parsed = match Url::parse(url) {
        Ok(parsed) => parsed,
        Err(url::ParseError::RelativeUrlWithoutBase) => {
            return Err(no_server(&format!("the server `{shown}` is relative")));
        }
        Err(_) => return Err(no_server(&format!("the server `{shown}` is no URL"))),
    };
    let reason = if !matches!(parsed.scheme(), "http" | "https") {
        "is neither `http` nor `https`"
    } else if !parsed.username().is_empty() || parsed.password().is_some() {
        "contains a user or a password"
    } else if parsed.query().is_some() || parsed.fragment().is_some() {
        "contains a query or a fragment"
    } else if url.contains(['{', '}']) || url.chars().any(char::is_control) {
        "contains characters that are not allowed"
    } else {
        return Ok(url.trim_end_matches('/').to_owned());
    };
    Err(no_server(&format!("the server `{shown}` {reason}")))
}
