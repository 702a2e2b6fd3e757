use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{operation::OperationSettings, response::StreamFormat};

/// Settings of a tool that is an HTTP API.
///
/// In every text, `{argument}` (or `{{.argument}}`) is replaced by an argument of the call and `${…}` by a variable or
/// a secret. `{{name}}` is a literal `{name}`, and `$$` a literal `$`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// Method of the request. `GET` if absent, `POST` if there is a body.
    #[serde(default)]
    pub method: Option<String>,
    /// URL, `http` or `https`. An argument is percent-encoded as one path segment or one query value; `?a={a}` is
    /// omitted if the argument is absent.
    #[serde(default)]
    pub url: Option<String>,
    /// Another name of `url`.
    #[serde(default)]
    pub url_template: Option<String>,
    /// Query parameters: a text, a number, a boolean or a list of them. A value that is exactly `{argument}` repeats
    /// the name for every element of a list; `{argument: ids, join: ","}` sends a list as one parameter, joined with a
    /// comma, a space, a tab or `|`. A parameter whose argument is absent is omitted. Without `query` and `request`, a
    /// request without a body sends the remaining arguments as its query.
    #[serde(default)]
    pub query: Map<String, Value>,
    /// Request headers. A header whose argument is absent is omitted.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Headers from environment variables: `Header=NAME` or `Header: NAME`. A bare `NAME` that `${NAME}` uses elsewhere
    /// only marks the variable as required; any other bare name becomes a header with `-` instead of `_`.
    #[serde(default)]
    pub headers_from_env: Vec<String>,
    /// Body of the request as JSON. A text that is exactly `{argument}` becomes the argument with its type; in a longer
    /// text the argument is inserted; a member whose argument is absent is omitted. Without a body, POST, PUT and PATCH
    /// send the remaining arguments with their original bytes.
    #[serde(default)]
    pub body: Option<Value>,
    /// Another name of `body`.
    #[serde(default)]
    pub body_template: Option<Value>,
    /// Mapping of arguments to the request, in PromptKit's form.
    #[serde(default)]
    pub request: Option<RequestMapping>,
    /// Mapping of the response to the result, in PromptKit's form.
    #[serde(default)]
    pub response: Option<ResponseMapping>,
    /// Header that carries the idempotency key of a call. Set this only for an upstream that processes requests with
    /// the same key once, since failed calls are then retried.
    #[serde(default)]
    pub idempotency: Option<KeySettings>,
    /// JSONPath (RFC 9535) to the part of the response that is the result. A path to one location returns its value, or
    /// null; any other path returns a list.
    #[serde(default)]
    pub response_path: Option<String>,
    /// Format of a response that is reported to the caller while it arrives, as progress: `sse`, `ndjson` or `text`. The result is
    /// the whole response; `response_path: "$[-1]"` selects the last event or value.
    #[serde(default)]
    pub stream: Option<StreamFormat>,
    /// Work that goes on after the API answered: how its status is read, and when it is done.
    #[serde(default, rename = "async")]
    pub operation: Option<OperationSettings>,
    /// Statuses that are a success, such as `200` or `"2xx"`. Any 2xx if absent.
    #[serde(default)]
    #[schemars(with = "Vec<StatusSchema>")]
    pub expected_status: Vec<Value>,
    /// Names of fields, at any depth, that are hidden in the result and in logs.
    #[serde(default)]
    pub redact: Vec<String>,
    /// Timeout of the whole exchange, in milliseconds. If absent or 0, the tool's own timeout, else 30000.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// Timeout of connecting, in milliseconds. 5000 if absent.
    #[serde(default)]
    pub connect_timeout_ms: Option<u64>,
    /// Maximum time without data from the upstream, in milliseconds. Not limited if absent.
    #[serde(default)]
    pub read_timeout_ms: Option<u64>,
    /// Maximum size of a response in bytes, after decompression. 16 MiB if absent.
    #[serde(default)]
    pub max_response_bytes: Option<usize>,
    /// Maximum size of a request body in bytes. 4 MiB if absent.
    #[serde(default)]
    pub max_request_bytes: Option<usize>,
    /// `true` if loopback and private networks may be reached. Link-local and metadata addresses stay blocked.
    #[serde(default)]
    pub allow_private: bool,
    /// Redirects to follow: `same_origin` (at most three, to the same scheme, host and port) or `none`.
    #[serde(default)]
    pub redirects: Redirects,
}

/// Mapping of arguments to the request, in PromptKit's form. Arguments go to the URL and the headers, then to
/// `query_params`, and the remaining ones to the body.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RequestMapping {
    /// Arguments that become query parameters of the same name.
    #[serde(default)]
    pub query_params: Vec<String>,
    /// Headers made from arguments, such as `X-Tenant: "{{.tenant}}"`.
    #[serde(default)]
    pub header_params: BTreeMap<String, String>,
    /// JMESPath that produces the body from the remaining arguments.
    #[serde(default)]
    pub body_mapping: Option<String>,
    /// Arguments that are not sent.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// Query parameters with fixed values.
    #[serde(default)]
    pub static_query: BTreeMap<String, String>,
    /// Headers with fixed values.
    #[serde(default)]
    pub static_headers: BTreeMap<String, String>,
    /// Members of the body with fixed values.
    #[serde(default)]
    pub static_body: Map<String, Value>,
}

/// Header that carries the idempotency key of a call.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("required" = ["header"]))]
pub(crate) struct KeySettings {
    /// Name of the header, such as `Idempotency-Key`. Its value is a UUID that is derived from tenant, principal, tool
    /// and key.
    #[serde(default)]
    pub header: String,
}

/// Mapping of the response to the result, in PromptKit's form.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResponseMapping {
    /// JMESPath that produces the result from the response.
    #[serde(default)]
    pub body_mapping: Option<String>,
}

/// Redirects to follow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Redirects {
    /// At most three, to the same scheme, host and port.
    #[default]
    SameOrigin,
    /// None: a redirect is an error.
    None,
}

/// Expected status, as a code or a class.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum StatusSchema {
    Code(u16),
    Class(String),
}
