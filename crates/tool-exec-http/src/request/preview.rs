//! Previews of requests: as they would be sent, without secrets.

use std::{borrow::Cow, collections::HashMap, fmt::Write};

use http::{HeaderName, HeaderValue, header::USER_AGENT};
use raw_json::RawJson;
use serde_json::json;
use tool_core::{
    CallContext, Preview, Reference, Secret, SecretSearch, ToolError, hide_credentials, hide_fields,
    names_secret,
};
use url::Url;

use super::Request;
use crate::{
    call::{HttpBackend, not_allowed},
    client::AGENT,
    compile::is_allowed_url,
};

/// Minimum length of a secret that is searched for, in bytes, if the request was built without secrets.
const MIN_LENGTH: usize = 4;
/// Authentication schemes (RFC 9110, section 11.1) that are shown before the hidden credentials.
const SCHEMES: [&str; 4] = ["basic", "bearer", "digest", "token"];

impl HttpBackend {
    /// Builds the request of a call as it would be sent, without secrets.
    ///
    /// The request is built with markers instead of secrets. If that fails, for example since a secret is part of the host, it
    /// is built with the secrets, which are then searched for and hidden.
    pub(crate) async fn build_preview(&self, cx: &CallContext) -> Result<Preview, ToolError> {
        let plan = &*self.plan;
        let values = self.values().await?;
        // A preview issues no callback URL.
        let takes_callback = plan.operation.as_ref().is_some_and(|plan| plan.takes_callback);
        let shown_url =
            takes_callback.then(|| Url::parse("https://callback.invalid/").expect("a constant URL"));
        let callback_url = shown_url.as_ref();
        let request = self.request(cx, &values, callback_url)?;
        if !is_allowed_url(&request.url, self.clients.address_policy(plan.client)) {
            return Err(not_allowed());
        }
        let is_secret = |reference: &Reference| plan.secrets.contains(reference);
        let marked: HashMap<Reference, Secret> = values
            .iter()
            .map(|(reference, value)| match is_secret(reference) {
                true => (reference.clone(), Secret::new(Preview::HIDDEN)),
                false => (reference.clone(), value.clone()),
            })
            .collect();
        let (request, min_length) = match self.request(cx, &marked, callback_url) {
            Ok(marked) => (marked, MIN_LENGTH),
            Err(_) => (request, 1),
        };
        let secrets = values
            .iter()
            .filter(|(reference, _)| is_secret(reference))
            .map(|(_, value)| value.expose().trim())
            .filter(|value| value.len() >= min_length);
        let search = SecretSearch::new(secrets);
        let hide = |text: &str| {
            let text = search.hide_in_text(text).into_owned();
            let text = self.secrets.hide_in_text(&text).into_owned();
            hide_credentials(&text).into_owned()
        };
        let fields = plan.hidden_fields(cx.tool().settings().redacted_fields());
        Ok(self.shown(&request, &fields, hide))
    }

    fn shown(&self, request: &Request, fields: &[String], hide: impl Fn(&str) -> String) -> Preview {
        let method = request.method.as_str();
        let url = hide(&unmarked(request.url.as_str()));
        let mut headers: Vec<(&str, String)> = request
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), self.header(name, value, &hide)))
            .collect();
        if !request.headers.contains_key(USER_AGENT) {
            headers.push(("user-agent", AGENT.to_owned()));
        }
        headers.sort();
        let body = request.body.as_ref().map(|body| {
            let text = String::from_utf8_lossy(body);
            // Fields are hidden in JSON only; other bodies have none.
            let json = RawJson::parse(text.clone().into_owned()).ok();
            let text = json.map_or(text, |json| Cow::Owned(hide_fields(&json, fields).to_string()));
            hide(&unmarked(&text))
        });
        let mut text = format!("{method} {url}\n");
        for (name, value) in &headers {
            let _ = writeln!(text, "{name}: {value}");
        }
        if let Some(body) = &body {
            let _ = write!(text, "\n{body}");
        }
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect();
        let request = json!({"method": method, "url": url, "headers": headers, "body": body});
        Preview::new(RawJson::from(request), text.trim_end().to_owned())
    }

    /// Returns the value of a header. If the header's name is that of a secret, everything but the scheme is hidden.
    fn header(&self, name: &HeaderName, value: &HeaderValue, hide: &impl Fn(&str) -> String) -> String {
        let value = String::from_utf8_lossy(value.as_bytes());
        let is_key = self.plan.key_header.as_ref() == Some(name);
        if is_key || !(names_secret(name.as_str()) || name == http::header::COOKIE) {
            return hide(&unmarked(&value));
        }
        match value.split_once(' ') {
            Some((scheme, _)) if SCHEMES.contains(&scheme.to_ascii_lowercase().as_str()) => {
                format!("{scheme} {}", Preview::HIDDEN)
            }
            _ => Preview::HIDDEN.to_owned(),
        }
    }
}

/// Returns the text with decoded markers: URLs and forms percent-encode them.
fn unmarked(text: &str) -> String {
    text.replace("%5Bredacted%5D", Preview::HIDDEN)
}
