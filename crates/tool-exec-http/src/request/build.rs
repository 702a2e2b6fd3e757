use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
    header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE},
};
use raw_json::{JsonKind, RawJson};
use tool_core::{ErrorKind, ToolError, TraceContext};
use url::Url;

use crate::{
    compile::{Plan, RequestContent},
    mapping::MappingError,
    response::StreamFormat,
    template::{HeaderError, QueryParam, ReservedNames, Scope, TemplateError, UrlError, push_value},
};

/// Request of one call.
#[derive(Clone)]
pub(crate) struct Request {
    pub method: Method,
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Option<Bytes>,
}

/// Headers of W3C Trace Context.
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACE_STATE: HeaderName = HeaderName::from_static("tracestate");

impl Request {
    /// Adds the trace context, unless the tool's own headers contain one.
    pub(crate) fn set_trace(&mut self, trace: &TraceContext) {
        if self.headers.contains_key(TRACE_PARENT) {
            return;
        }
        if let Ok(parent) = HeaderValue::try_from(trace.to_string()) {
            self.headers.insert(TRACE_PARENT, parent);
        }
        if let Some(Ok(state)) = trace.tracestate.as_deref().map(HeaderValue::from_str) {
            self.headers.insert(TRACE_STATE, state);
        }
    }

    /// Changes the request to the target of a redirect. As in browsers, only 307 and 308 keep the method and the body (Fetch
    /// Standard, HTTP-redirect fetch). Any other status turns the request into a `GET`, and `true` is returned: the upstream
    /// then processed the original request.
    pub(crate) fn follow_to(&mut self, url: Url, status: StatusCode) -> bool {
        self.url = url;
        let was_processed =
            !matches!(status.as_u16(), 307 | 308) && !matches!(self.method, Method::GET | Method::HEAD);
        if was_processed {
            self.method = Method::GET;
            self.body = None;
            self.headers.remove(CONTENT_TYPE);
            self.headers.remove(CONTENT_LENGTH);
        }
        was_processed
    }
}

impl Plan {
    /// Builds the request of one call. Error messages name arguments and settings, never a value.
    pub(crate) fn request(&self, scope: &Scope<'_>) -> Result<Request, ToolError> {
        let mut url = self.address.render(scope).map_err(|error| match error {
            UrlError::Arguments(unusable) => refused(&unusable),
            UrlError::Values(reason) => operator(format!("the tool's address {reason}")),
        })?;
        let mut fixed = ReservedNames::default();
        // A URL from a `${…}` value may have parameters of its own.
        url.query_pairs().for_each(|(name, _)| fixed.add(&name));
        let pairs = self.address.query.iter().chain(&self.query);
        pairs
            .filter_map(QueryParam::fixed_name)
            .for_each(|name| fixed.add(name));
        let mut query = String::new();
        for (name, argument) in self.query.iter().filter_map(QueryParam::sole_argument) {
            if scope.argument(argument).is_some() {
                fixed.refuse(argument, name)?;
            }
        }
        for pair in self.address.query.iter().chain(&self.query) {
            pair.push_to(&mut query, scope).map_err(|error| refused(&error))?;
        }
        if let RequestContent::RestAsQuery { used } = &self.content {
            for (name, _) in scope.arguments.iter().filter(|(name, _)| !used.contains(&**name)) {
                fixed.refuse(name, name)?;
                let pair = QueryParam::for_argument(name);
                pair.push_to(&mut query, scope).map_err(|error| refused(&error))?;
            }
        }
        if !query.is_empty() {
            let query = match url.query() {
                Some(given) => format!("{given}&{query}"),
                None => query,
            };
            url.set_query(Some(&query));
        }
        let mut headers = self.headers(scope)?;
        let body = self.body(scope)?;
        if body.is_some() && !self.has_header(&CONTENT_TYPE) {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if body.is_none() && matches!(self.method, Method::POST | Method::PUT | Method::PATCH) {
            // Some servers require the header if there is no body.
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        Ok(Request {
            method: self.method.clone(),
            url,
            headers,
            body,
        })
    }

    /// Renders the headers of one call that do not depend on its body.
    pub(crate) fn headers(&self, scope: &Scope<'_>) -> Result<HeaderMap, ToolError> {
        let mut headers = HeaderMap::new();
        for header in &self.headers {
            if let Some(value) = header.render(scope).map_err(header_refused)? {
                headers.insert(header.name.clone(), value);
            }
        }
        let accept = self
            .stream
            .map_or("application/json, */*;q=0.8", StreamFormat::accept);
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static(accept));
        Ok(headers)
    }

    fn body(&self, scope: &Scope<'_>) -> Result<Option<Bytes>, ToolError> {
        let raw = match &self.content {
            RequestContent::None | RequestContent::RestAsQuery { .. } => None,
            RequestContent::Template(body) => {
                let mut text = String::new();
                let written = body.write(&mut text, scope).map_err(|error| refused(&error))?;
                written
                    .then(|| RawJson::parse(text))
                    .transpose()
                    .map_err(|error| {
                        ToolError::new(
                            ErrorKind::InvalidArguments,
                            format!("the request body cannot be built: {error}"),
                        )
                    })?
            }
            RequestContent::Rest { used, fixed, mapping } => {
                let mut rest = rest(scope, used)?;
                if !fixed.is_empty() {
                    let mut names = ReservedNames::default();
                    fixed.iter().for_each(|(name, _)| names.add(name));
                    // An argument of exactly this name is replaced below.
                    let is_fixed = |name: &str| fixed.iter().any(|(key, _)| key == name);
                    for (name, _) in rest.members().filter(|(name, _)| !is_fixed(name)) {
                        names.refuse(&name, &name)?;
                    }
                    let fixed: Vec<(&str, RawJson)> = fixed
                        .iter()
                        .map(|(key, value)| (key.as_str(), value.clone()))
                        .collect();
                    rest = rest.with_members(&fixed).map_err(internal)?;
                }
                let empty = rest.members().next().is_none();
                match mapping {
                    _ if empty => None,
                    None => Some(rest),
                    Some(mapping) => {
                        let value = rest.to().map_err(internal)?;
                        Some(
                            mapping
                                .apply(&value, self.max_request_bytes)
                                .map_err(mapping_failed)?,
                        )
                    }
                }
            }
        };
        let body = raw.map(|raw| encode_body(&raw, self.content_type()));
        if body
            .as_ref()
            .is_some_and(|body| body.len() > self.max_request_bytes)
        {
            return Err(too_large(self.max_request_bytes));
        }
        Ok(body)
    }
}

/// Returns the arguments that no other part uses, each with its original bytes.
fn rest(scope: &Scope<'_>, used: &std::collections::BTreeSet<String>) -> Result<RawJson, ToolError> {
    let members: Vec<(&str, RawJson)> = scope
        .arguments
        .iter()
        .filter(|(name, _)| !used.contains(&**name))
        .map(|(name, value)| (&**name, value.clone()))
        .collect();
    RawJson::object().with_members(&members).map_err(internal)
}

/// Encodes a body for its media type: a form, plain text, or JSON.
fn encode_body(raw: &RawJson, content_type: Option<&str>) -> Bytes {
    let essence = content_type
        .and_then(|text| text.split(';').next())
        .unwrap_or("application/json")
        .trim()
        .to_ascii_lowercase();
    if essence == "application/x-www-form-urlencoded" && raw.kind() == JsonKind::Object {
        let mut form = String::new();
        for (name, value) in raw.members() {
            push_fields(&mut form, &name, &value);
        }
        return form.into();
    }
    let json = essence.ends_with("/json") || essence.ends_with("+json");
    match raw.string().filter(|_| !json) {
        Some(text) => text.into(),
        None => raw.as_bytes().clone(),
    }
}

fn push_fields(form: &mut String, name: &str, value: &RawJson) {
    if value.kind() == JsonKind::Array {
        let elements: Vec<RawJson> = value.to().unwrap_or_default();
        elements
            .iter()
            .for_each(|element| push_fields(form, name, element));
        return;
    }
    if value.kind() == JsonKind::Null {
        return;
    }
    if !form.is_empty() {
        form.push('&');
    }
    push_value(form, name);
    form.push('=');
    let text = value.string().unwrap_or_else(|| value.as_str().to_owned());
    push_value(form, &text);
}

fn refused(unusable: &TemplateError) -> ToolError {
    let message = match unusable {
        TemplateError::Absent(name) => format!("the argument `{name}` is missing: the address needs it"),
        TemplateError::Argument(name, reason) => format!("the argument `{name}` {reason}"),
    };
    ToolError::new(ErrorKind::InvalidArguments, message)
}

fn header_refused(error: HeaderError) -> ToolError {
    match error {
        HeaderError::Argument(unusable) => refused(&unusable),
        HeaderError::Value(name) => operator(format!(
            "the configured value of the header `{name}` contains characters that are not allowed in a header"
        )),
    }
}

fn mapping_failed(error: MappingError) -> ToolError {
    let message = match error {
        MappingError::TooLarge => "the mapped request body is too large".to_owned(),
        MappingError::Failed(reason) => format!("the arguments cannot be mapped to a body: {reason}"),
    };
    ToolError::new(ErrorKind::InvalidArguments, message)
}

fn too_large(limit: usize) -> ToolError {
    let message = format!("the request body is larger than the allowed {limit} bytes");
    ToolError::new(ErrorKind::InvalidArguments, message)
}

/// Error for an invalid value of the operator, which no caller can fix.
fn operator(message: String) -> ToolError {
    ToolError::new(ErrorKind::Auth, message).with_no_retry()
}

fn internal(error: raw_json::JsonError) -> ToolError {
    ToolError::new(ErrorKind::Internal, "the arguments cannot be read").with_source(error)
}
