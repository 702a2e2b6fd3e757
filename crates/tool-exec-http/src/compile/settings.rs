use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The settings of a tool that is an HTTP API.
///
/// In every text `{argument}` (or `{{.argument}}`) stands for an argument of the call and `${…}` for a variable or a
/// secret; `{{name}}` is plain `{name}`, `$$` a plain `$`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// The request's method. `GET` if absent, `POST` if there is a body.
    #[serde(default)]
    pub method: Option<String>,
    /// The address, `http` or `https`. An argument is percent-encoded as one path segment or one query value; `?a={a}`
    /// is left out when the argument is absent.
    #[serde(default)]
    pub url: Option<String>,
    /// Another name of `url`.
    #[serde(default)]
    pub url_template: Option<String>,
    /// Query parameters: a text, a number, a boolean or a list of them. One that is exactly `{argument}` repeats its
    /// name for every element of a list; one whose argument is absent is left out. Without `query` and `request`, a
    /// request without a body takes the arguments that nothing else uses as its query.
    #[serde(default)]
    pub query: Map<String, Value>,
    /// Request headers. One whose argument is absent is left out.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Headers from environment variables: `HeaderTemplate=NAME` or `HeaderTemplate: NAME`. A bare `NAME` that `${NAME}` uses
    /// elsewhere only says that it is needed; any other becomes a header with `-` for `_`.
    #[serde(default)]
    pub headers_from_env: Vec<String>,
    /// The request's body as JSON. A text that is exactly `{argument}` becomes the argument as it is; in a longer
    /// text it is inserted; a member whose argument is absent is left out. Without a body, POST, PUT and
    /// PATCH send the arguments that nothing else uses, as they were written.
    #[serde(default)]
    pub body: Option<Value>,
    /// Another name of `body`.
    #[serde(default)]
    pub body_template: Option<Value>,
    /// Where arguments go, in PromptKit's form.
    #[serde(default)]
    pub request: Option<RequestMapping>,
    /// What becomes of the response, in PromptKit's form.
    #[serde(default)]
    pub response: Option<ResponseMapping>,
    /// How the upstream is told the idempotency key of a call. Say this only of one that does once what it is told twice
    /// with the same key: failed calls are then made again.
    #[serde(default)]
    pub idempotency: Option<KeySettings>,
    /// The part of the response that is the result: a JSONPath (RFC 9535). A path to one place gives what is there,
    /// or null; any other gives a list.
    #[serde(default)]
    pub response_path: Option<String>,
    /// The statuses that are a success, such as `200` or `"2xx"`. Any 2xx if absent.
    #[serde(default)]
    #[schemars(with = "Vec<StatusSchema>")]
    pub expected_status: Vec<Value>,
    /// Names of fields, at any depth, that are hidden in the result and in what is logged.
    #[serde(default)]
    pub redact: Vec<String>,
    /// How long the whole exchange may take, in milliseconds. The tool's own timeout, else 30000, if absent or 0.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// How long connecting may take, in milliseconds: 5000 if absent.
    #[serde(default)]
    pub connect_timeout_ms: Option<u64>,
    /// How long the upstream may be silent, in milliseconds. Not limited by itself if absent.
    #[serde(default)]
    pub read_timeout_ms: Option<u64>,
    /// The largest response in bytes, after decompression: 16 MiB if absent.
    #[serde(default)]
    pub max_response_bytes: Option<usize>,
    /// The largest request body in bytes: 4 MiB if absent.
    #[serde(default)]
    pub max_request_bytes: Option<usize>,
    /// Whether loopback and private networks may be reached. Link-local and metadata addresses may not even then.
    #[serde(default)]
    pub allow_private: bool,
    /// What to do about redirects: `same_origin` (at most three, to the same scheme, host and port) or `none`.
    #[serde(default)]
    pub redirects: Redirects,
}

/// Where arguments go, in PromptKit's form: the URL's and headers' arguments, then `query_params`, and the rest is
/// the body.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RequestMapping {
    /// Arguments that become query parameters of the same name.
    #[serde(default)]
    pub query_params: Vec<String>,
    /// Headers made from arguments, such as `X-Tenant: "{{.tenant}}"`.
    #[serde(default)]
    pub header_params: BTreeMap<String, String>,
    /// The JMESPath that makes the body from the remaining arguments.
    #[serde(default)]
    pub body_mapping: Option<String>,
    /// Arguments that are sent nowhere.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// Query parameters that no argument changes.
    #[serde(default)]
    pub static_query: BTreeMap<String, String>,
    /// Headers that no argument changes.
    #[serde(default)]
    pub static_headers: BTreeMap<String, String>,
    /// Members of the body that no argument changes.
    #[serde(default)]
    pub static_body: Map<String, Value>,
}

/// How the upstream is told the idempotency key of a call.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("required" = ["header"]))]
pub(crate) struct KeySettings {
    /// The header, such as `Idempotency-Key`. Its value is a UUID made from tenant, principal, tool and key.
    #[serde(default)]
    pub header: String,
}

/// What becomes of the response, in PromptKit's form.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResponseMapping {
    /// The JMESPath that makes the result from the response.
    #[serde(default)]
    pub body_mapping: Option<String>,
}

/// What to do about redirects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Redirects {
    /// At most three, to the same scheme, host and port.
    #[default]
    SameOrigin,
    /// None: a redirect is an error.
    None,
}

/// How an expected status is written.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum StatusSchema {
    Code(u16),
    Class(String),
}
