use std::{
    collections::{BTreeSet, HashSet},
    time::Duration,
};

use http::{HeaderName, Method, header::CONTENT_TYPE};
use raw_json::RawJson;
use serde_json::Value;
use tool_core::{Descriptor, Provider, Reference, Secrets, Trust};

use crate::{
    HttpOptions,
    address::Address,
    body::Body,
    client::ClientKey,
    header::{EnvironmentHeader, Header},
    json_path::ResponsePath,
    mapping::Mapping,
    network::Reach,
    problems::{Problems, nearest, pointer, read_settings},
    query::Pair,
    redact,
    settings::{Redirects, RequestMapping, Settings},
    status::ExpectedStatus,
    text::Text,
};

/// A tool's settings, read and judged: all that a call needs.
pub(crate) struct Plan {
    pub tool: std::sync::Arc<str>,
    pub method: Method,
    pub address: Address,
    pub query: Vec<Pair>,
    pub headers: Vec<Header>,
    pub content: Content,
    /// Every reference once: they are resolved before anything is rendered.
    pub references: Vec<Reference>,
    /// Those whose values are hidden in results as well.
    pub secrets: HashSet<Reference>,
    pub expected: ExpectedStatus,
    pub selection: Option<Selection>,
    pub redact: Vec<String>,
    pub timeout: Duration,
    pub read_timeout: Option<Duration>,
    pub client: ClientKey,
    pub max_response_bytes: usize,
    pub max_request_bytes: usize,
    pub redirects: Redirects,
}

/// What the body is, or where the arguments go that nothing else uses.
pub(crate) enum Content {
    None,
    Template(Body),
    /// The arguments that nothing else uses are the body.
    Rest {
        used: BTreeSet<String>,
        fixed: Vec<(String, RawJson)>,
        mapping: Option<Mapping>,
    },
    /// The arguments that nothing else uses are query parameters.
    RestAsQuery {
        used: BTreeSet<String>,
    },
}

/// The part of the response that is the result.
pub(crate) enum Selection {
    Path(ResponsePath),
    Mapping(Mapping),
}

impl Plan {
    /// Reads a tool's settings, or tells every problem that they have.
    pub(crate) fn compile(
        descriptor: &Descriptor,
        options: &HttpOptions,
        secrets: &dyn Secrets,
    ) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let settings = read_settings(&descriptor.executor.config, &mut problems);
        let plan = Compiler {
            settings: &settings,
            problems: &mut problems,
        }
        .plan(descriptor, options);
        let Some(plan) = plan else { return Err(problems) };
        plan.judge(descriptor, options, secrets, &mut problems);
        if problems.0.is_empty() {
            Ok(plan)
        } else {
            Err(problems)
        }
    }

    /// Judges what only the whole shows: names of arguments, references, where the address leads.
    fn judge(
        &self,
        descriptor: &Descriptor,
        options: &HttpOptions,
        secrets: &dyn Secrets,
        problems: &mut Problems,
    ) {
        self.judge_arguments(descriptor, problems);
        let trusted = descriptor.origin.trust == Trust::Operator;
        for reference in &self.references {
            if !trusted && reference.provider != Provider::Secret {
                let message = format!("`{reference}` may only be named in an operator's own files");
                problems.add("", message);
            } else if let Err(error) = reference.check(secrets) {
                problems.add("", error.to_string());
            }
        }
        if !trusted && self.client.allow_private {
            problems.add("/allow_private", "may only be set in an operator's own files");
        }
        if let Some(argument) = self.address.host_argument()
            && !self.references.is_empty()
        {
            problems.hint(
                "/url",
                format!("`{{{argument}}}` must not choose the host, since a `${{…}}` value is sent to it"),
                "write the host out, with one tool for each",
            );
        }
        let reach = Reach {
            networks: options.allow_private_networks.clone(),
            private: self.client.allow_private,
        };
        if let Some(url) = self.address.constant()
            && !may_lead_to(&url, &reach)
        {
            problems.hint(
                "/url",
                "leads to an address that is not public",
                "if this is meant, set `allow_private: true` or let the operator allow the network",
            );
        }
    }

    /// An argument that the tool does not declare is a misspelt one, or braces that were meant as they are.
    fn judge_arguments(&self, descriptor: &Descriptor, problems: &mut Problems) {
        let schema = &descriptor.input_schema;
        let open = [
            "$ref",
            "$dynamicRef",
            "allOf",
            "anyOf",
            "oneOf",
            "if",
            "patternProperties",
        ]
        .iter()
        .any(|key| schema.get(key).is_some())
            || schema
                .get("additionalProperties")
                .is_some_and(|value| value.as_str() != "false");
        let Some(properties) = schema.get("properties").filter(|_| !open) else {
            return;
        };
        let declared: Vec<String> = properties.members().map(|(key, _)| key.into_owned()).collect();
        let declared: Vec<&str> = declared.iter().map(String::as_str).collect();
        let named: BTreeSet<&str> = self.texts().into_iter().flat_map(Text::arguments).collect();
        for name in named {
            if !declared.contains(&name) {
                let hint = nearest(name, &declared).map_or_else(
                    || format!("for plain braces write `{{{{{name}}}}}`"),
                    |meant| format!("did you mean `{{{meant}}}`?"),
                );
                problems.hint("", format!("`{{{name}}}` is no argument of the tool"), hint);
            }
        }
    }

    fn texts(&self) -> Vec<&Text> {
        let mut texts: Vec<&Text> = self.address.texts().collect();
        texts.extend(self.query.iter().flat_map(Pair::texts));
        texts.extend(self.headers.iter().map(|header| &header.value));
        if let Content::Template(body) = &self.content {
            body.texts(&mut texts);
        }
        texts
    }
}

/// Whether a URL may lead where requests may go, as far as it shows without a look-up.
pub(crate) fn may_lead_to(url: &url::Url, reach: &Reach) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(address)) => reach.allows(&address.to_string(), address.into()),
        Some(url::Host::Ipv6(address)) => reach.allows(&address.to_string(), address.into()),
        Some(url::Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            let loopback = name == "localhost" || name.ends_with(".localhost");
            !loopback || reach.allows(name, std::net::Ipv4Addr::LOCALHOST.into())
        }
        None => false,
    }
}

/// Makes a plan from settings, collecting problems on the way.
struct Compiler<'a> {
    settings: &'a Settings,
    problems: &'a mut Problems,
}

impl Compiler<'_> {
    fn plan(mut self, descriptor: &Descriptor, options: &HttpOptions) -> Option<Plan> {
        let settings = self.settings;
        let address = self.address();
        let body = self.body();
        let method = self.method(body.is_some());
        let mut headers = self.headers();
        let mut query = self.query();
        let selection = self.selection();
        let expected = self.expected();
        let (address, method) = (address?, method?);

        let mut used: BTreeSet<String> = BTreeSet::new();
        let texts = address.texts().chain(headers.iter().map(|header| &header.value));
        let texts = texts.chain(query.iter().flat_map(Pair::texts));
        used.extend(texts.flat_map(Text::arguments).map(str::to_owned));
        let content = self.content(&method, body, used);

        let mut references: Vec<Reference> = Vec::new();
        let mut body_texts = Vec::new();
        if let Content::Template(body) = &content {
            body.texts(&mut body_texts);
        }
        let texts = address
            .texts()
            .chain(query.iter().flat_map(Pair::texts))
            .chain(body_texts);
        references.extend(texts.flat_map(Text::references).cloned());
        self.environment_headers(&mut headers, &mut references);
        let mut secrets = HashSet::new();
        for header in &headers {
            references.extend(header.value.references().cloned());
            if redact::names_secret(header.name.as_str()) {
                secrets.extend(header.value.references().cloned());
            }
        }
        secrets.extend(
            references
                .iter()
                .filter(|reference| redact::is_secret(reference))
                .cloned(),
        );
        let mut seen = HashSet::new();
        references.retain(|reference| seen.insert(reference.clone()));

        let milliseconds = |value: Option<u64>| value.filter(|value| *value > 0).map(Duration::from_millis);
        query.shrink_to_fit();
        Some(Plan {
            tool: descriptor.name.clone(),
            method,
            address,
            query,
            headers,
            content,
            references,
            secrets,
            expected,
            selection,
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
            max_request_bytes: settings.max_request_bytes.unwrap_or(options.max_request_bytes),
            redirects: settings.redirects,
        })
    }

    fn address(&mut self) -> Option<Address> {
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
        self.problems.keep(place, Address::parse(text))
    }

    fn body(&mut self) -> Option<Body> {
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
        let body = Body::parse(value);
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

    fn query(&mut self) -> Vec<Pair> {
        let mut pairs = Vec::new();
        for (name, value) in &self.settings.query {
            pairs.extend(
                self.problems
                    .keep(&pointer("/query", name), Pair::from_setting(name, value)),
            );
        }
        if let Some(request) = &self.settings.request {
            pairs.extend(request.query_params.iter().map(|name| Pair::of_argument(name)));
            for (name, value) in &request.static_query {
                let place = pointer("/request/static_query", name);
                let text = self.problems.keep(&place, Text::fixed(value));
                pairs.extend(text.map(|text| Pair::new(name, vec![text])));
            }
        }
        pairs
    }

    /// The headers in the order in which a later one replaces an earlier one of the same name.
    fn headers(&mut self) -> Vec<Header> {
        let mut headers = Vec::new();
        let empty = RequestMapping::default();
        let request = self.settings.request.as_ref().unwrap_or(&empty);
        type Read = fn(&str, &str) -> Result<Header, String>;
        for (parent, list, read) in [
            (
                "/request/header_params",
                &request.header_params,
                Header::parse as Read,
            ),
            ("/request/static_headers", &request.static_headers, Header::fixed),
            ("/headers", &self.settings.headers, Header::parse),
        ] {
            for (name, value) in list {
                headers.extend(self.problems.keep(&pointer(parent, name), read(name, value)));
            }
        }
        headers
    }

    /// Adds the headers from the environment, and the variables that are only needed.
    fn environment_headers(&mut self, headers: &mut Vec<Header>, references: &mut Vec<Reference>) {
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

    fn content(&mut self, method: &Method, body: Option<Body>, mut used: BTreeSet<String>) -> Content {
        let with_body = matches!(*method, Method::POST | Method::PUT | Method::PATCH);
        let request = self.settings.request.as_ref();
        let shaped =
            request.is_some_and(|request| request.body_mapping.is_some() || !request.static_body.is_empty());
        if let Some(body) = body {
            if shaped {
                self.problems.add(
                    "/request",
                    "a body is given already: `body_mapping` and `static_body` have no use",
                );
            }
            return Content::Template(body);
        }
        used.extend(request.iter().flat_map(|request| request.exclude.iter().cloned()));
        if !with_body {
            if shaped {
                self.problems.add(
                    "/request",
                    format!("a `{method}` request has no body to be mapped"),
                );
            }
            return if request.is_none() && self.settings.query.is_empty() {
                Content::RestAsQuery { used }
            } else {
                Content::None
            };
        }
        let mapping = request.and_then(|request| request.body_mapping.as_deref());
        Content::Rest {
            used,
            fixed: request
                .iter()
                .flat_map(|request| &request.static_body)
                .map(|(key, value): (&String, &Value)| (key.clone(), RawJson::from(value)))
                .collect(),
            mapping: mapping
                .filter(|text| !text.is_empty())
                .and_then(|text| self.problems.keep("/request/body_mapping", Mapping::parse(text))),
        }
    }

    fn selection(&mut self) -> Option<Selection> {
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
                path.map(Selection::Path)
            }
            (None, Some(mapping)) => {
                let mapping = self
                    .problems
                    .keep("/response/body_mapping", Mapping::parse(mapping));
                mapping.map(Selection::Mapping)
            }
            (None, None) => None,
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

impl Plan {
    /// What the body's bytes are made for: the type that the settings name, JSON if they name none.
    pub(crate) fn content_type(&self) -> Option<&str> {
        let header = self.headers.iter().rfind(|header| header.name == CONTENT_TYPE);
        header.and_then(|header| header.value.literal())
    }

    /// Whether the settings give a header themselves.
    pub(crate) fn has_header(&self, name: &HeaderName) -> bool {
        self.headers.iter().any(|header| header.name == name)
    }
}
