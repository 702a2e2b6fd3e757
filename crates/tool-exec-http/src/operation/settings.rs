use schemars::JsonSchema;
use serde::Deserialize;

/// Work that goes on after the API answered, as after the status 202 (RFC 9110, section 15.3.3). The tool asks for its status
/// until it is done, or waits for a callback.
///
/// A client that supports tasks gets a task. Any other waits until its call is nearly over; then it gets a handle, and the same
/// call made again goes on waiting for the same work.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OperationSettings {
    /// URL of the status, which a `GET` with the headers of the tool reads: a JSONPath to it in the answer
    /// (`$.links.status`), or a URL in which `{name}` is a member of the answer, or else an argument of the call. If absent,
    /// the header `Operation-Location` of the answer, or else `Location`. Scheme, host and port are always those of the tool.
    #[serde(default)]
    pub status_url: Option<String>,
    /// Time between two requests for the status, 100 ms to 1 h: `2s` if absent. `Retry-After` of an answer takes precedence.
    #[serde(default)]
    pub interval: Option<String>,
    /// JMESPath that is true in an answer of finished work, such as `status == 'succeeded'`. If absent, work is finished when
    /// the status is another success than 202.
    #[serde(default)]
    pub done: Option<String>,
    /// JMESPath that is true in an answer of failed work, such as `status == 'failed'`. It is an error of the tool.
    #[serde(default)]
    pub failed: Option<String>,
    /// JSONPath (RFC 9535) to the result in the last answer. If absent, `response_path`, or else the whole answer.
    #[serde(default)]
    pub result: Option<String>,
    /// `true` if the API sends the last answer itself, by a `POST` to the URL that the placeholder `{callback_url}` is replaced
    /// by, in the URL, the query, the headers or the body. The URL can be used once, until the work expires. It is below
    /// `gateway.public_url`, and received by `toolplane serve --http`.
    #[serde(default)]
    pub callback: bool,
    /// Time after which work that is not finished is given up, at most a day: `1h` if absent.
    #[serde(default)]
    pub expires: Option<String>,
}
