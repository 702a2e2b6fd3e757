//! Remote endpoints.

use raw_json::RawJson;

use super::{
    Made,
    document::Remote,
    input::{Answers, escaped},
    unusable,
};
use crate::{CatalogError, foreign::shown};

/// Makes the settings of a remote endpoint.
pub(super) fn settings(remote: &Remote, answers: &mut Answers) -> Result<Made, CatalogError> {
    let transport = match remote.kind.as_str() {
        "streamable-http" => "http",
        "sse" => "sse",
        other => {
            let problem = format!(
                "its transport `{}` is neither `streamable-http` nor `sse`",
                shown(other)
            );
            return Err(unusable(&remote.url, problem));
        }
    };
    check_url(&remote.url)?;
    let url = match remote.variables.is_empty() {
        true => escaped(&remote.url),
        false => answers.fill(&remote.url, &remote.variables)?,
    };
    let mut headers = Vec::new();
    for header in &remote.headers {
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if header.name.is_empty() || !header.name.bytes().all(is_token) {
            let problem = format!("`{}` is no name of a header", shown(&header.name));
            return Err(unusable(&remote.url, problem));
        }
        if let Some(value) = answers.text(&header.name, &header.input)? {
            headers.push((header.name.as_str(), RawJson::from(value.as_str())));
        }
    }
    let mut members = vec![
        ("url", RawJson::from(url.as_str())),
        ("type", RawJson::from(transport)),
    ];
    if !headers.is_empty() {
        members.push(("headers", RawJson::from_members(&headers)));
    }
    Ok(Made {
        settings: RawJson::from_members(&members),
        pinned: "nothing: the endpoint may change at any time".to_owned(),
        warnings: Vec::new(),
    })
}

/// Checks that a URL is encrypted, leads to this machine, or begins with a variable.
fn check_url(url: &str) -> Result<(), CatalogError> {
    let lower = url.to_ascii_lowercase();
    let is_loopback = lower.strip_prefix("http://").is_some_and(|rest| {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let name = match host.strip_prefix("[::1]") {
            Some(_) => "::1",
            None => host.split(':').next().unwrap_or_default(),
        };
        matches!(name, "localhost" | "127.0.0.1" | "::1")
    });
    if lower.starts_with("https://") || url.starts_with('{') || is_loopback {
        return Ok(());
    }
    let problem = match lower.starts_with("http://") {
        true => "its URL is not encrypted: it begins with `http://`",
        false => "its URL begins with neither `https://` nor a variable",
    };
    Err(unusable(url, problem).with_hint("ask whoever publishes the server"))
}
