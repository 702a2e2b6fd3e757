use mcp_wire::RpcError;
use raw_json::{JsonKind, RawJson};

use crate::{ClientError, ClientErrorKind, Connection, RequestOptions, ServerRequest};

/// Result with `resultType` `input_required`: input that a modern server needs before it can finish a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InputRequiredResult {
    /// Requested input by name. The responses must have the same names.
    pub requests: Vec<(String, ServerRequest)>,
    /// Opaque state to send back to the server.
    pub state: Option<RawJson>,
}

impl InputRequiredResult {
    /// Parses a result. Returns `None` if the request is finished.
    #[must_use]
    pub fn from_result(result: &RawJson) -> Option<Self> {
        let kind = result.get("resultType")?;
        if kind.as_str() != "\"input_required\"" {
            return None;
        }
        let requests = result.get("inputRequests").unwrap_or(RawJson::object());
        let requests = requests.members().map(|(name, request)| {
            let method = request.get("method").and_then(|method| method.string());
            let request = ServerRequest {
                method: method.unwrap_or_default(),
                params: request
                    .get("params")
                    .filter(|params| params.kind() == JsonKind::Object),
                tag: None,
            };
            (name.into_owned(), request)
        });
        Some(Self {
            requests: requests.collect(),
            state: result.get("requestState"),
        })
    }

    /// Builds the params of the next round: the original ones, the responses, and the server's state.
    #[must_use]
    pub fn retry_params(&self, params: Option<&RawJson>, answers: &[(&str, RawJson)]) -> RawJson {
        let none = RawJson::object();
        let params = params
            .filter(|params| params.kind() == JsonKind::Object)
            .unwrap_or(&none);
        let params = params
            .without_members(&["inputResponses", "requestState"])
            .expect("parameters are an object");
        let answers = RawJson::from_members(answers);
        let mut members = vec![("inputResponses", answers)];
        members.extend(self.state.clone().map(|state| ("requestState", state)));
        params.with_members(&members).expect("parameters are an object")
    }
}

/// Maximum number of rounds of one request.
const MAX_ROUNDS: usize = 16;
/// Maximum number of inputs in one round.
const MAX_REQUESTS: usize = 64;

impl Connection {
    /// Sends a request like [`request`](Self::request), and provides the input that a modern server requires by the
    /// handlers of the connection, until the request is finished.
    ///
    /// Each round is a request of its own with the full timeouts of `options`. There are at most 16 rounds. A legacy
    /// server sends requests during the call instead, which both methods handle.
    ///
    /// # Errors
    /// Returns the errors of [`request`](Self::request), and [`ClientErrorKind::Unsupported`] if an input has no
    /// handler, a handler refuses, or the rounds do not end.
    ///
    /// # Cancellation
    /// Dropping the future cancels the round in progress, as with [`request`](Self::request), or drops the handler that
    /// provides input for it. The server is not told that no further round will come.
    pub async fn request_with_input(
        &self,
        method: &str,
        params: Option<RawJson>,
        options: RequestOptions,
    ) -> Result<RawJson, ClientError> {
        let mut next = params.clone();
        for _ in 0..MAX_ROUNDS {
            let result = self.request(method, next, options.clone()).await?;
            let Some(input) = InputRequiredResult::from_result(&result) else {
                return Ok(result);
            };
            let answers = self.collect_input(&input).await?;
            let answers: Vec<(&str, RawJson)> = answers
                .iter()
                .map(|(name, answer)| (*name, answer.clone()))
                .collect();
            next = Some(input.retry_params(params.as_ref(), &answers));
        }
        Err(unsupported("the server requires input in too many rounds"))
    }

    async fn collect_input<'a>(
        &self,
        input: &'a InputRequiredResult,
    ) -> Result<Vec<(&'a str, RawJson)>, ClientError> {
        if input.requests.len() > MAX_REQUESTS {
            return Err(unsupported("the server requires too many inputs at once"));
        }
        let mut answers = Vec::with_capacity(input.requests.len());
        for (name, request) in &input.requests {
            let answer = self.options().handlers.answer(request.clone()).ok_or_else(|| {
                let method: String = request.method.escape_debug().take(100).collect();
                unsupported(&format!(
                    "the server requires `{method}`, which this client does not support"
                ))
            })?;
            answers.push((name.as_str(), answer.await.map_err(input_refused)?));
        }
        Ok(answers)
    }
}

fn input_refused(error: RpcError) -> ClientError {
    unsupported("the input that the server requires was refused").with_source(error)
}

/// The request has not run: a server that requires input has done nothing yet, or keeps it in its state.
fn unsupported(detail: &str) -> ClientError {
    ClientError::new(ClientErrorKind::Unsupported(detail.to_owned())).with_sent(true)
}
