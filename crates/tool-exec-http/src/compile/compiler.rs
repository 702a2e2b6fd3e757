use std::{
    collections::{BTreeSet, HashSet},
    time::Duration,
};

use http::{HeaderName, Method};
use raw_json::RawJson;
use tool_core::{Descriptor, Reference, names_secret};
use tool_settings::pointer;

use super::{
    plan::{Plan, RequestContent, ResultSelection},
    problems::{Problems, nearest},
    settings::{RequestMapping, Settings},
};
use crate::{
    HttpExecutorOptions,
    client::ClientKey,
    mapping::Mapping,
    operation::{CALLBACK_URL, OperationPlan},
    response::{ExpectedStatus, ResponsePath},
    template::{
        BodyTemplate, EnvironmentHeader, HeaderTemplate, QueryParam, TextTemplate, UrlTemplate, check_name,
    },
};

/// Compiles settings to a plan, and collects the problems in them.
pub(crate) struct Compiler<'a> {
    pub settings: &'a Settings,
    pub problems: &'a mut Problems,
}

impl Compiler<'_> {
    /// Returns the plan, or `None` without a URL or a method. The plan is valid only if there are no problems.
    pub(crate) fn plan(mut self, descriptor: &Descriptor, options: &HttpExecutorOptions) -> Option<Plan> {
        let settings = self.settings;
        let address = self.address();
        let body = self.body();
        let method = self.method(body.is_some());
        let mut headers = self.headers();
        let query = self.query();
        let key_header = self.key_header(&headers);
        let selection = self.selection();
        let expected = self.expected();
        let operation = settings
            .operation
            .as_ref()
            .map(|settings| OperationPlan::compile(settings, address.as_ref(), self.problems));
        let (address, method) = (address?, method?);

        let texts = address.texts().chain(headers.iter().map(|header| &header.value));
        let texts = texts.chain(query.iter().flat_map(QueryParam::texts));
        let used = texts
            .flat_map(TextTemplate::arguments)
            .map(str::to_owned)
            .collect();
        let content = self.content(&method, body, used);
        if let Some(operation) = &operation {
            let named = texts_of(&address, &query, &headers, &content);
            let named: Vec<&str> = named.into_iter().flat_map(TextTemplate::arguments).collect();
            self.check_operation(operation, &named, &method, descriptor);
            if operation.takes_callback && !options.has_callbacks {
                self.problems.hint(
                    "/async/callback",
                    "needs a URL at which the API reaches this gateway",
                    "such as `gateway: {public_url: https://tools.example.com}`, or ask for the status: `status_url`",
                );
            }
        }
        let (references, secrets) =
            self.references(&address, &query, &mut headers, &content, operation.as_ref());
        let milliseconds = |value: Option<u64>| value.filter(|value| *value > 0).map(Duration::from_millis);
        Some(Plan {
            tool: descriptor.name.clone(),
            method,
            address,
            query,
            headers,
            content,
            key_header,
            references,
            secrets,
            expected,
            stream: settings.stream,
            selection,
            operation,
            redact: settings.redact.clone(),
            timeout: milliseconds(settings.timeout_ms)
                .or(descriptor.timeout)
                .unwrap_or(options.timeout),
            read_timeout: milliseconds(settings.read_timeout_ms),
            client: ClientKey {
                allow_private: settings.allow_private,
                connect_timeout: milliseconds(settings.connect_timeout_ms).unwrap_or(options.connect_timeout),
            },
            max_response_bytes: settings.max_response_bytes.unwrap_or(options.max_response_bytes),
            max_response_key: match settings.max_response_bytes {
                Some(_) => "max_response_bytes",
                None => "defaults.max_result_bytes",
            },
            max_request_bytes: settings.max_request_bytes.unwrap_or(options.max_request_bytes),
            redirects: settings.redirects,
        })
    }

    fn address(&mut self) -> Option<UrlTemplate> {
        let (place, text) = match (&self.settings.url, &self.settings.url_template) {
            (Some(url), None) => ("/url", url),
            (None, Some(url)) => ("/url_template", url),
            (Some(_), Some(_)) => {
                self.problems
                    .add("/url_template", "is another name of `url`: give one of them");
                return None;
            }
            (None, None) => {
                self.problems.hint(
                    "",
                    "`url` is missing",
                    "such as `url: https://api.example.com/v1/items/{id}`",
                );
                return None;
            }
        };
        self.problems.keep(place, UrlTemplate::parse(text))
    }

    fn body(&mut self) -> Option<BodyTemplate> {
        let (place, value) = match (&self.settings.body, &self.settings.body_template) {
            (Some(body), None) => ("/body", body),
            (None, Some(body)) => ("/body_template", body),
            (Some(_), Some(_)) => {
                self.problems
                    .add("/body_template", "is another name of `body`: give one of them");
                return None;
            }
            (None, None) => return None,
        };
        let body = BodyTemplate::parse(value);
        body.map_err(|(below, message)| self.problems.add(format!("{place}{below}"), message))
            .ok()
    }

    fn method(&mut self, has_body: bool) -> Option<Method> {
        let Some(text) = &self.settings.method else {
            let mapped = self
                .settings
                .request
                .as_ref()
                .is_some_and(|request| request.body_mapping.is_some() || !request.static_body.is_empty());
            return Some(if has_body || mapped {
                Method::POST
            } else {
                Method::GET
            });
        };
        const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
        let method = text.to_ascii_uppercase();
        if !METHODS.contains(&method.as_str()) {
            let hint = nearest(&method, &METHODS)
                .map_or_else(|| METHODS.join(", "), |meant| format!("did you mean `{meant}`?"));
            self.problems.hint(
                "/method",
                format!("unknown method `{}`", text.escape_debug()),
                hint,
            );
            return None;
        }
        if has_body && matches!(method.as_str(), "GET" | "HEAD") {
            self.problems.hint(
                "/method",
                format!("a `{method}` request has no body"),
                "put the arguments into `query`, or use another method",
            );
        }
        method.parse().ok()
    }

    fn query(&mut self) -> Vec<QueryParam> {
        let mut pairs = Vec::new();
        for (name, value) in &self.settings.query {
            pairs.extend(
                self.problems
                    .keep(&pointer("/query", name), QueryParam::from_setting(name, value)),
            );
        }
        if let Some(request) = &self.settings.request {
            pairs.extend(
                request
                    .query_params
                    .iter()
                    .map(|name| QueryParam::for_argument(name)),
            );
            for (name, value) in &request.static_query {
                let place = pointer("/request/static_query", name);
                let text = self.problems.keep(&place, TextTemplate::fixed(value));
                pairs.extend(text.map(|text| QueryParam::new(name, vec![text])));
            }
        }
        pairs
    }

    /// Returns the headers. A later one replaces an earlier one of the same name.
    fn headers(&mut self) -> Vec<HeaderTemplate> {
        let mut headers = Vec::new();
        let empty = RequestMapping::default();
        let request = self.settings.request.as_ref().unwrap_or(&empty);
        type Read = fn(&str, &str) -> Result<HeaderTemplate, String>;
        for (parent, list, read) in [
            (
                "/request/header_params",
                &request.header_params,
                HeaderTemplate::parse as Read,
            ),
            (
                "/request/static_headers",
                &request.static_headers,
                HeaderTemplate::fixed,
            ),
            ("/headers", &self.settings.headers, HeaderTemplate::parse),
        ] {
            for (name, value) in list {
                headers.extend(self.problems.keep(&pointer(parent, name), read(name, value)));
            }
        }
        headers
    }

    fn key_header(&mut self, headers: &[HeaderTemplate]) -> Option<HeaderName> {
        let settings = self.settings.idempotency.as_ref()?;
        let place = "/idempotency/header";
        if settings.header.is_empty() {
            let hint = "such as `idempotency: {header: Idempotency-Key}`";
            self.problems.hint("/idempotency", "`header` is missing", hint);
            return None;
        }
        let name = self.problems.keep(place, check_name(&settings.header))?;
        if headers.iter().any(|header| header.name == name) {
            let message = format!("the header `{name}` is given in `headers` as well");
            self.problems.hint(place, message, "remove one of them");
        }
        Some(name)
    }

    /// Returns every reference once, and the set of those whose values are secrets. Also adds the headers from the
    /// environment, since the meaning of a bare name depends on the other references.
    fn references(
        &mut self,
        address: &UrlTemplate,
        query: &[QueryParam],
        headers: &mut Vec<HeaderTemplate>,
        content: &RequestContent,
        operation: Option<&OperationPlan>,
    ) -> (Vec<Reference>, HashSet<Reference>) {
        let mut texts: Vec<&TextTemplate> = address.texts().collect();
        texts.extend(operation.into_iter().flat_map(OperationPlan::texts));
        texts.extend(query.iter().flat_map(QueryParam::texts));
        if let RequestContent::Template(body) = content {
            body.texts(&mut texts);
        }
        let mut references: Vec<Reference> = texts
            .into_iter()
            .flat_map(TextTemplate::references)
            .cloned()
            .collect();
        self.environment_headers(headers, &mut references);
        let mut secrets = HashSet::new();
        for header in headers.iter() {
            references.extend(header.value.references().cloned());
            if names_secret(header.name.as_str()) {
                secrets.extend(header.value.references().cloned());
            }
        }
        let named = references.iter().filter(|reference| reference.is_secret());
        secrets.extend(named.cloned());
        let mut seen = HashSet::new();
        references.retain(|reference| seen.insert(reference.clone()));
        (references, secrets)
    }

    /// Adds the headers from the environment, and references to variables that are only required.
    fn environment_headers(&mut self, headers: &mut Vec<HeaderTemplate>, references: &mut Vec<Reference>) {
        let mut named: HashSet<String> = references
            .iter()
            .map(|reference| reference.name.clone())
            .collect();
        let values = headers.iter().flat_map(|header| header.value.references());
        named.extend(values.map(|reference| reference.name.clone()));
        for (index, text) in self.settings.headers_from_env.iter().enumerate() {
            let place = format!("/headers_from_env/{index}");
            match self.problems.keep(&place, EnvironmentHeader::parse(text)) {
                Some(EnvironmentHeader::Needed(reference, _)) if named.contains(&reference.name) => {
                    references.push(reference);
                }
                Some(EnvironmentHeader::Needed(_, header) | EnvironmentHeader::Header(header)) => {
                    headers.push(header);
                }
                None => {}
            }
        }
    }

    fn content(
        &mut self,
        method: &Method,
        body: Option<BodyTemplate>,
        mut used: BTreeSet<String>,
    ) -> RequestContent {
        let with_body = matches!(*method, Method::POST | Method::PUT | Method::PATCH);
        let request = self.settings.request.as_ref();
        let shaped =
            request.is_some_and(|request| request.body_mapping.is_some() || !request.static_body.is_empty());
        if let Some(body) = body {
            if shaped {
                self.problems.add(
                    "/request",
                    "a body is already set: `body_mapping` and `static_body` have no effect",
                );
            }
            return RequestContent::Template(body);
        }
        used.extend(request.iter().flat_map(|request| request.exclude.iter().cloned()));
        if !with_body {
            if shaped {
                self.problems
                    .add("/request", format!("a `{method}` request has no body to map"));
            }
            return if request.is_none() && self.settings.query.is_empty() {
                RequestContent::RestAsQuery { used }
            } else {
                RequestContent::None
            };
        }
        let mapping = request.and_then(|request| request.body_mapping.as_deref());
        RequestContent::Rest {
            used,
            fixed: request
                .iter()
                .flat_map(|request| &request.static_body)
                .map(|(key, value)| (key.clone(), RawJson::from(value)))
                .collect(),
            mapping: mapping
                .filter(|text| !text.is_empty())
                .and_then(|text| self.problems.keep("/request/body_mapping", Mapping::parse(text))),
        }
    }

    fn selection(&mut self) -> Option<ResultSelection> {
        let mapping = self
            .settings
            .response
            .as_ref()
            .and_then(|response| response.body_mapping.as_deref());
        let mapping = mapping.filter(|text| !text.is_empty());
        match (self.settings.response_path.as_deref(), mapping) {
            (Some(_), Some(_)) => {
                self.problems.add(
                    "/response_path",
                    "cannot be given together with `response.body_mapping`",
                );
                None
            }
            (Some(path), None) => {
                let path = self.problems.keep("/response_path", ResponsePath::parse(path));
                path.map(ResultSelection::Path)
            }
            (None, Some(mapping)) => {
                let mapping = self
                    .problems
                    .keep("/response/body_mapping", Mapping::parse(mapping));
                mapping.map(ResultSelection::Mapping)
            }
            (None, None) => None,
        }
    }

    /// Checks the settings of `async` against the others.
    fn check_operation(
        &mut self,
        operation: &OperationPlan,
        named: &[&str],
        method: &Method,
        descriptor: &Descriptor,
    ) {
        let settings = self.settings;
        if *method == Method::HEAD {
            self.problems.add(
                "/async",
                "a `HEAD` request begins no work: it has no answer to read",
            );
        }
        if settings.stream.is_some() {
            self.problems
                .add("/stream", "cannot be given together with `async`");
        }
        if operation.result.is_some() && (settings.response_path.is_some() || settings.response.is_some()) {
            let message = "cannot be given together with `response_path` or `response`";
            self.problems.add("/async/result", message);
        }
        if !operation.takes_callback {
            return;
        }
        if !named.contains(&CALLBACK_URL) {
            let message =
                format!("the request does not contain `{{{CALLBACK_URL}}}`, so the API cannot call back");
            let hint = format!("such as `body: {{notify: \"{{{CALLBACK_URL}}}\"}}`");
            self.problems.hint("/async/callback", message, hint);
        }
        let properties = descriptor.input_schema.get("properties");
        if properties.is_some_and(|properties| properties.get(CALLBACK_URL).is_some()) {
            let message =
                format!("the tool has an argument `{CALLBACK_URL}`, which the callback URL would replace");
            self.problems
                .hint("/async/callback", message, "give the argument another name");
        }
    }

    fn expected(&mut self) -> ExpectedStatus {
        if self.settings.expected_status.is_empty() {
            return ExpectedStatus::success();
        }
        let mut expected = ExpectedStatus::none();
        for (index, value) in self.settings.expected_status.iter().enumerate() {
            self.problems
                .keep(&format!("/expected_status/{index}"), expected.add(value));
        }
        expected
    }
}

/// Returns the texts of all parts of a request.
fn texts_of<'a>(
    address: &'a UrlTemplate,
    query: &'a [QueryParam],
    headers: &'a [HeaderTemplate],
    content: &'a RequestContent,
) -> Vec<&'a TextTemplate> {
    let mut texts: Vec<&TextTemplate> = address.texts().collect();
    texts.extend(query.iter().flat_map(QueryParam::texts));
    texts.extend(headers.iter().map(|header| &header.value));
    if let RequestContent::Template(body) = content {
        body.texts(&mut texts);
    }
    texts
}
