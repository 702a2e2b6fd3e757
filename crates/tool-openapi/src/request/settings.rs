//! Settings of the executor of kind `http` for an operation.

use serde_json::{Map, Value, json};

use super::{
    arguments::Arguments,
    body::BodyPlan,
    cookies::{Cookies, is_cookie_name},
    parameter::Parameter,
    path::PathTemplate,
    place::ParameterPlace,
};
use crate::{
    document::{Document, Version, swagger_parts},
    operation::{Credential, CredentialPlace, Operation},
    schema::{Definitions, Kinds, restrict},
};

/// Methods that the executor sends.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
/// Headers that OpenAPI describes elsewhere.
const IGNORED: [&str; 3] = ["accept", "content-type", "authorization"];
/// Headers about framing, routing and compression, which only an HTTP client sets.
const OF_CLIENT: [&str; 14] = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    "x-http-method-override",
];

/// Input schema and settings of a tool.
#[derive(Debug)]
pub(crate) struct ToolRequest {
    pub(crate) input_schema: Value,
    pub(crate) config: Map<String, Value>,
    pub(crate) warnings: Vec<String>,
}

/// Request of an operation while it is put together.
pub(super) struct Builder<'a, 'd> {
    pub(super) document: &'d Document,
    pub(super) definitions: Definitions<'d>,
    pub(super) arguments: Arguments,
    pub(super) query: Map<String, Value>,
    pub(super) headers: Map<String, Value>,
    pub(super) cookies: Cookies,
    pub(super) warnings: Vec<String>,
    operation: &'a Operation<'d>,
}

/// Returns what sends an operation, or the reason why nothing does.
pub(crate) fn tool_request<'d>(
    document: &'d Document,
    operation: &Operation<'d>,
    base: &str,
    credentials: &[Credential],
) -> Result<ToolRequest, String> {
    let method = operation.upper_method();
    if !METHODS.contains(&method.as_str()) {
        return Err(format!("the method `{}` cannot be sent", method.escape_debug()));
    }
    let mut path = PathTemplate::parse(operation.path)?;
    let mut builder = Builder {
        document,
        definitions: Definitions::new(document),
        arguments: Arguments::default(),
        query: Map::new(),
        headers: Map::new(),
        cookies: Cookies::default(),
        warnings: Vec::new(),
        operation,
    };
    let (parameters, body) = builder.parts()?;
    builder.authorize(credentials)?;
    let plan = match &body {
        Some(body) => builder.plan_body(&method, body)?,
        None => BodyPlan::default(),
    };
    if let Some(members) = &plan.members {
        let properties = members.get("properties").and_then(Value::as_object);
        let names = properties.into_iter().flatten().map(|(name, _)| name.clone());
        builder.arguments.reserve(names);
    } else if plan.whole.is_some() {
        builder.arguments.reserve(["body".to_owned()]);
    }
    for parameter in &parameters {
        builder.add_parameter(parameter, &mut path)?;
    }
    for name in path.unset() {
        let shown = name.escape_debug().to_string();
        builder.warnings.push(format!(
            "the path parameter `{shown}` is not declared: it is taken for a text"
        ));
        let argument = builder
            .arguments
            .add(&name, "path", json!({"type": "string"}), true);
        path.set(&name, format!("{{{argument}}}"));
    }
    Ok(builder.finish(
        &method,
        &format!("{}{}", base.replace('$', "$$"), path.render()),
        plan,
    ))
}

impl<'d> Builder<'_, 'd> {
    /// Returns the parameters and the body of the operation. Its own parameters replace those of its path.
    fn parts(&mut self) -> Result<(Vec<Parameter>, Option<Value>), String> {
        let document = self.document;
        let list = |value: &'d Value| {
            value
                .get("parameters")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
        };
        let all = list(self.operation.item).chain(list(self.operation.value));
        let mut values: Vec<Value> = Vec::new();
        for value in all {
            let value = document.resolve(value)?;
            let key = |value: &Value| (value.get("name").cloned(), value.get("in").cloned());
            values.retain(|earlier| key(earlier) != key(value));
            values.push(value.clone());
        }
        let body = if document.version == Version::Swagger2 {
            let consumes = self
                .operation
                .value
                .get("consumes")
                .or_else(|| document.get("consumes"));
            let consumes: Vec<String> = consumes
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(|media| media.as_str().map(str::to_owned))
                .collect();
            let (others, body) = swagger_parts(values, &consumes);
            values = others;
            body
        } else {
            self.operation.value.get("requestBody").cloned()
        };
        let mut parameters = Vec::new();
        for value in &values {
            match Parameter::read(document, value) {
                Ok(parameter) => parameters.push(parameter),
                Err(reason) if value.get("required") == Some(&Value::Bool(true)) => return Err(reason),
                Err(reason) => self.warnings.push(format!("left out: {reason}")),
            }
        }
        // The path comes first, as a reader of the URL expects it.
        parameters.sort_by_key(|parameter| parameter.place != ParameterPlace::Path);
        Ok((parameters, body))
    }

    fn authorize(&mut self, credentials: &[Credential]) -> Result<(), String> {
        for credential in credentials {
            let (name, value) = (&credential.name, json!(credential.value));
            match credential.place {
                CredentialPlace::Header if is_header_name(name) => {
                    self.headers.insert(name.clone(), value);
                }
                CredentialPlace::Query => {
                    self.query.insert(name.clone(), value);
                }
                CredentialPlace::Cookie if is_cookie_name(name) => {
                    self.cookies.add(name, credential.value.clone(), true);
                }
                _ => {
                    return Err(format!(
                        "its credential cannot be sent as `{}`",
                        name.escape_debug()
                    ));
                }
            }
        }
        Ok(())
    }

    fn add_parameter(&mut self, parameter: &Parameter, path: &mut PathTemplate) -> Result<(), String> {
        let (name, place) = (&parameter.name, parameter.place);
        let sent = match place {
            ParameterPlace::Path => self.send_path(parameter, path),
            ParameterPlace::Query => self.send_query(parameter),
            ParameterPlace::Header => self.send_header(parameter),
            ParameterPlace::Cookie => self.send_cookie(parameter),
        };
        let Err(reason) = sent else { return Ok(()) };
        let name = name.escape_debug();
        let is_credential = place == ParameterPlace::Header && is_any(&IGNORED, &parameter.name);
        let is_outside = place == ParameterPlace::Path && !path.has(&parameter.name);
        if parameter.is_required && !is_credential && !is_outside {
            return Err(format!(
                "the required {place} parameter `{name}` cannot be sent: {reason}"
            ));
        }
        self.warnings
            .push(format!("the {place} parameter `{name}` is left out: {reason}"));
        Ok(())
    }

    /// Returns the schema of a parameter, restricted to single values.
    fn scalar(&mut self, parameter: &Parameter) -> Result<Value, String> {
        let schema = self.definitions.add(&parameter.schema)?;
        if parameter.media.is_some() {
            return Err("its value is described by a media type".to_owned());
        }
        let scalar = restrict(schema, Kinds::SCALARS, &self.definitions);
        let scalar =
            scalar.ok_or("its value is a list or an object, and only single values can be sent there")?;
        Ok(parameter.annotate(scalar))
    }

    fn send_path(&mut self, parameter: &Parameter, path: &mut PathTemplate) -> Result<(), String> {
        let name = &parameter.name;
        if !path.has(name) {
            return Err("the path has no such parameter".to_owned());
        }
        // RFC 6570, sections 3.2.2, 3.2.5 and 3.2.7.
        let before = match parameter.style() {
            "simple" => String::new(),
            "label" => ".".to_owned(),
            "matrix" => format!(";{}=", name.replace('$', "$$")),
            other => return Err(format!("its style is `{}`", other.escape_debug())),
        };
        let schema = self.scalar(parameter)?;
        let argument = self.arguments.add(name, "path", schema, true);
        path.set(name, format!("{before}{{{argument}}}"));
        Ok(())
    }

    fn send_header(&mut self, parameter: &Parameter) -> Result<(), String> {
        let name = &parameter.name;
        if is_any(&IGNORED, name) {
            return Err("OpenAPI describes this header by security schemes and media types".to_owned());
        }
        if name.eq_ignore_ascii_case("cookie") {
            return Err("cookies are parameters of their own".to_owned());
        }
        if !is_header_name(name) {
            return Err("only an HTTP client sets this header, or it is none".to_owned());
        }
        if self.headers.keys().any(|known| known.eq_ignore_ascii_case(name)) {
            return Err("another parameter or credential has this name".to_owned());
        }
        let schema = self.scalar(parameter)?;
        let argument = self.arguments.add(name, "header", schema, parameter.is_required);
        self.headers
            .insert(name.clone(), json!(format!("{{{argument}}}")));
        Ok(())
    }

    fn send_cookie(&mut self, parameter: &Parameter) -> Result<(), String> {
        let name = &parameter.name;
        if !is_cookie_name(name) || self.cookies.has(name) {
            return Err("a cookie cannot have this name, or another one has it".to_owned());
        }
        if !parameter.is_required && !self.cookies.takes_optional() {
            return Err("an optional cookie cannot stand beside others".to_owned());
        }
        let schema = self.scalar(parameter)?;
        let argument = self.arguments.add(name, "cookie", schema, parameter.is_required);
        self.cookies
            .add(name, format!("{{{argument}}}"), parameter.is_required);
        Ok(())
    }

    fn finish(mut self, method: &str, url: &str, plan: BodyPlan) -> ToolRequest {
        let mut config = Map::new();
        config.insert("method".to_owned(), json!(method));
        config.insert("url".to_owned(), json!(url));
        let has_body = matches!(method, "POST" | "PUT" | "PATCH") || plan.whole.is_some();
        if !self.query.is_empty() {
            config.insert("query".to_owned(), Value::Object(self.query));
        } else if !has_body {
            // Only the arguments that the URL and the headers name are sent.
            config.insert("request".to_owned(), json!({}));
        }
        if let Some(cookie) = self.cookies.header() {
            self.headers.insert("Cookie".to_owned(), json!(cookie));
        }
        if let Some(content_type) = plan.content_type {
            self.headers
                .insert("Content-Type".to_owned(), json!(content_type));
        }
        if !self.headers.is_empty() {
            config.insert("headers".to_owned(), Value::Object(self.headers));
        }
        let mut additional = Some(Value::Bool(false));
        if let Some((schema, is_required)) = plan.whole {
            config.insert("body".to_owned(), json!("{body}"));
            self.arguments.put("body", schema, is_required);
        }
        if let Some(members) = plan.members {
            additional = members.get("additionalProperties").cloned();
            let required = members.get("required").and_then(Value::as_array);
            for (name, schema) in members
                .get("properties")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
            {
                let is_required =
                    required.is_some_and(|required| required.iter().any(|listed| listed == name));
                self.arguments.put(name, schema.clone(), is_required);
            }
        }
        let mut schema = Value::Object(self.arguments.into_schema(additional));
        let used = self.definitions.used_by(&schema);
        if !used.is_empty() {
            schema["$defs"] = Value::Object(used);
        }
        ToolRequest {
            input_schema: schema,
            config,
            warnings: self.warnings,
        }
    }
}

fn is_any(names: &[&str], name: &str) -> bool {
    names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Returns `true` for a name that a header of a tool can have: a token (RFC 9110, section 5.6.2).
fn is_header_name(name: &str) -> bool {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let is_proxy = name
        .get(..6)
        .is_some_and(|start| start.eq_ignore_ascii_case("proxy-"));
    !name.is_empty() && name.chars().all(is_token) && !is_any(&OF_CLIENT, name) && !is_proxy
}

/// Returns `true` for a media type of JSON.
pub(super) fn is_json(media: &str) -> bool {
    let essence = media.split(';').next().unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
    essence.ends_with("/json") || essence.ends_with("+json")
}
