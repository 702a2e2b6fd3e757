use std::{
    borrow::Cow,
    collections::{BTreeSet, HashSet},
    time::Duration,
};

use http::{HeaderName, Method, header::CONTENT_TYPE};
use raw_json::RawJson;
use serde_json::Value;
use tool_core::{Descriptor, Provider, Reference, Secrets, Trust};

use super::{
    compiler::Compiler,
    problems::{Problems, nearest, pointer_of, read_settings},
    settings::Redirects,
};
use crate::{
    HttpExecutorOptions,
    client::{AddressPolicy, ClientKey},
    mapping::Mapping,
    operation::{CALLBACK_URL, OperationPlan},
    response::{ExpectedStatus, ResponsePath, StreamFormat},
    template::{BodyTemplate, HeaderTemplate, QueryParam, TextTemplate, UrlTemplate},
};

/// Compiled and validated settings of a tool: everything that a call needs.
pub(crate) struct Plan {
    pub tool: std::sync::Arc<str>,
    pub method: Method,
    pub address: UrlTemplate,
    pub query: Vec<QueryParam>,
    pub headers: Vec<HeaderTemplate>,
    pub content: RequestContent,
    /// Header that carries the idempotency key.
    pub key_header: Option<HeaderName>,
    /// All references, each once. They are resolved before anything is rendered.
    pub references: Vec<Reference>,
    /// References whose values are hidden in results as well.
    pub secrets: HashSet<Reference>,
    pub expected: ExpectedStatus,
    /// Format in which the response is reported while it arrives.
    pub stream: Option<StreamFormat>,
    pub selection: Option<ResultSelection>,
    /// Work that goes on after the answer, if the API may do so.
    pub operation: Option<OperationPlan>,
    pub redact: Vec<String>,
    pub timeout: Duration,
    pub read_timeout: Option<Duration>,
    pub client: ClientKey,
    pub max_response_bytes: usize,
    /// Configuration key that sets this limit.
    pub max_response_key: &'static str,
    pub max_request_bytes: usize,
    pub redirects: Redirects,
}

/// Source of the body, or the place of the arguments that no other part uses.
pub(crate) enum RequestContent {
    None,
    Template(BodyTemplate),
    /// The arguments that no other part uses are the body.
    Rest {
        used: BTreeSet<String>,
        fixed: Vec<(String, RawJson)>,
        mapping: Option<Mapping>,
    },
    /// The arguments that no other part uses are query parameters.
    RestAsQuery {
        used: BTreeSet<String>,
    },
}

/// Selects the part of the response that is the result.
pub(crate) enum ResultSelection {
    Path(ResponsePath),
    Mapping(Mapping),
}

impl Plan {
    /// Returns what selects the result from the last answer.
    pub(crate) fn selection(&self) -> Option<&ResultSelection> {
        let of_operation = self
            .operation
            .as_ref()
            .and_then(|operation| operation.result.as_ref());
        of_operation.or(self.selection.as_ref())
    }

    /// Returns the names of the fields to hide, from the executor's settings and the tool's.
    pub(crate) fn hidden_fields<'a>(&'a self, of_tool: &'a [String]) -> Cow<'a, [String]> {
        match (&*self.redact, of_tool) {
            (own, []) => own.into(),
            ([], of_tool) => of_tool.into(),
            (own, of_tool) => [own, of_tool].concat().into(),
        }
    }

    /// Compiles a tool's settings, or returns every problem in them.
    pub(crate) fn compile(
        descriptor: &Descriptor,
        options: &HttpExecutorOptions,
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
        plan.validate(descriptor, options, secrets, &mut problems);
        if problems.0.is_empty() {
            Ok(plan)
        } else {
            Err(problems)
        }
    }

    /// Returns the headers and parameters with literal values.
    fn written(&self) -> impl Iterator<Item = (&str, &str)> {
        let headers = self
            .headers
            .iter()
            .filter_map(|header| Some((header.name.as_str(), header.value.literal()?)));
        let pairs = self.query.iter().chain(&self.address.query);
        headers.chain(pairs.filter_map(QueryParam::written))
    }

    /// Validates a tool that an agent made: it has one host, and no more memory than others.
    fn validate_agent(&self, url: &str, options: &HttpExecutorOptions, problems: &mut Problems) {
        if self.address.constant().is_none() {
            problems.hint(
                url,
                "must name its host: an agent's tool has one host, whatever it is called with",
                "write the scheme and the host out, such as `https://api.example.com/{path}`",
            );
        }
        let sizes = [
            (
                "/max_response_bytes",
                self.max_response_bytes,
                options.max_response_bytes,
            ),
            (
                "/max_request_bytes",
                self.max_request_bytes,
                options.max_request_bytes,
            ),
        ];
        for (pointer, size, most) in sizes {
            if size > most {
                let message = format!("is more than the {most} bytes that a tool of an agent may have");
                problems.hint(pointer, message, "write a smaller number, or remove it");
            }
        }
    }

    /// Validates everything that needs the whole plan: names of arguments, references, the address of the upstream.
    fn validate(
        &self,
        descriptor: &Descriptor,
        options: &HttpExecutorOptions,
        secrets: &dyn Secrets,
        problems: &mut Problems,
    ) {
        self.validate_arguments(descriptor, problems);
        let config = &descriptor.executor.config;
        let url = if config.get("url").is_some() {
            "/url"
        } else {
            "/url_template"
        };
        let trusted = descriptor.origin.trust == Trust::Operator;
        for reference in &self.references {
            // What an agent made has each of its references by a grant.
            let is_granted = descriptor.origin.trust == Trust::Agent;
            if !trusted && !is_granted && reference.provider != Provider::Secret {
                let message = format!("`{reference}` may only be named in an operator's own files");
                problems.add(pointer_of_reference(config, reference), message);
            } else if let Err(error) = reference.check(secrets) {
                problems.add(pointer_of_reference(config, reference), error.to_string());
            }
        }
        if trusted {
            for (name, value) in self.written() {
                secrets.learn_written(name, value);
            }
        }
        if !trusted && self.client.allow_private {
            problems.add("/allow_private", "may only be set in an operator's own files");
        }
        if descriptor.origin.trust == Trust::Agent {
            self.validate_agent(url, options, problems);
        }
        if let Some(argument) = self.address.host_argument()
            && !self.references.is_empty()
        {
            problems.hint(
                url,
                format!("`{{{argument}}}` must not choose the host, since a `${{…}}` value is sent to it"),
                "write the host out, with one tool for each",
            );
        }
        let reach = AddressPolicy {
            networks: options.allow_private_networks.clone(),
            private: self.client.allow_private,
        };
        if let Some(constant) = self.address.constant()
            && !is_allowed_url(&constant, &reach)
        {
            problems.hint(
                url,
                "leads to an address that is not public",
                "if this is meant, set `allow_private: true` or let the operator allow the network",
            );
        }
    }

    /// Reports arguments that the tool does not declare: misspelt ones, or braces that were meant literally.
    fn validate_arguments(&self, descriptor: &Descriptor, problems: &mut Problems) {
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
        let takes_callback = self.operation.as_ref().is_some_and(|plan| plan.takes_callback);
        let named: BTreeSet<&str> = self
            .texts()
            .into_iter()
            .flat_map(TextTemplate::arguments)
            .collect();
        for name in named {
            let is_declared = declared.contains(&name) || takes_callback && name == CALLBACK_URL;
            if !is_declared {
                let hint = nearest(name, &declared).map_or_else(
                    || format!("for plain braces write `{{{{{name}}}}}`"),
                    |meant| format!("did you mean `{{{meant}}}`?"),
                );
                let names = |text: &str| {
                    TextTemplate::parse(text).is_ok_and(|text| text.arguments().any(|other| other == name))
                };
                let place = pointer_of(&descriptor.executor.config, &names);
                problems.hint(place, format!("the tool has no argument `{{{name}}}`"), hint);
            }
        }
    }

    fn texts(&self) -> Vec<&TextTemplate> {
        let mut texts: Vec<&TextTemplate> = self.address.texts().collect();
        texts.extend(self.query.iter().flat_map(QueryParam::texts));
        texts.extend(self.headers.iter().map(|header| &header.value));
        if let RequestContent::Template(body) = &self.content {
            body.texts(&mut texts);
        }
        texts
    }
}

/// Returns the JSON Pointer of a reference: of a text with it, or of a header from the environment.
fn pointer_of_reference(config: &Value, reference: &Reference) -> String {
    pointer_of(config, &|text| {
        TextTemplate::fixed(text).is_ok_and(|text| text.references().any(|other| other == reference))
            || text.rsplit(['=', ':', ' ']).next() == Some(&reference.name)
    })
}

/// Returns `false` if the URL's host is an address or a loopback name that is not allowed. Other names are checked when they
/// are resolved.
pub(crate) fn is_allowed_url(url: &url::Url, reach: &AddressPolicy) -> bool {
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

impl Plan {
    /// Returns the media type that the settings name for the body, or `None` for JSON.
    pub(crate) fn content_type(&self) -> Option<&str> {
        let header = self.headers.iter().rfind(|header| header.name == CONTENT_TYPE);
        header.and_then(|header| header.value.literal())
    }

    /// Returns `true` if the settings contain this header.
    pub(crate) fn has_header(&self, name: &HeaderName) -> bool {
        self.headers.iter().any(|header| header.name == name)
    }
}
