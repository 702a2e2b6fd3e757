use std::{io, path::Path};

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use raw_json::RawJson;
use tokio::net::UnixStream;
use toolplane::core::CorrelationId;

/// Client of the operators' socket of a gateway: see [`Gateway::serve_operator`](crate::Gateway::serve_operator).
///
/// A client sends one request. Connect again for the next.
///
/// # Examples
/// ```no_run
/// use toolplane_gateway::OperatorClient;
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let socket = std::path::Path::new("/run/toolplane/operator.sock");
/// OperatorClient::connect(socket).await?.disable("search", Some("maintenance")).await?;
/// let disabled = OperatorClient::connect(socket).await?.disabled().await?;
/// assert_eq!(disabled.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct OperatorClient(UnixStream);

/// Error of a request to a gateway.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OperatorClientError {
    /// The gateway cannot be reached, or its answer is invalid.
    #[error("the gateway does not answer")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The gateway refuses the request.
    #[non_exhaustive]
    #[error("{message}")]
    Refused {
        /// Kind of the error: `not_found`, `decided`, `denied`, `usage` or `unavailable`.
        kind: String,
        /// Reason, as text for people.
        message: String,
    },
}

/// Maximum size of an answer, in bytes: enough for the arguments of all calls that can be pending.
const MAX_ANSWER: usize = 64 << 20;

impl OperatorClient {
    /// Connects to the socket at this path.
    ///
    /// # Cancellation
    /// When the future is dropped, there is no connection.
    ///
    /// # Errors
    /// When no gateway listens there.
    pub async fn connect(socket: &Path) -> io::Result<Self> {
        UnixStream::connect(socket).await.map(Self)
    }

    /// Returns the state of each server: see [`Toolplane::server_records`](toolplane::Toolplane::server_records).
    ///
    /// # Cancellation
    /// When the future is dropped, the connection is closed. Nothing was changed.
    ///
    /// # Errors
    /// When the gateway does not answer.
    pub async fn servers(self) -> Result<Vec<RawJson>, OperatorClientError> {
        let answer = self.send(Method::GET, "/servers", None).await?;
        Ok(answer.get("servers").unwrap_or_default().items().collect())
    }

    /// Returns the disabled tools: see [`Toolplane::disabled_records`](toolplane::Toolplane::disabled_records).
    ///
    /// # Cancellation
    /// When the future is dropped, the connection is closed. Nothing was changed.
    ///
    /// # Errors
    /// When the gateway does not answer.
    pub async fn disabled(self) -> Result<Vec<RawJson>, OperatorClientError> {
        let answer = self.send(Method::GET, "/disabled", None).await?;
        Ok(answer.get("tools").unwrap_or_default().items().collect())
    }

    /// Returns the definitions that are withheld: see
    /// [`Toolplane::withheld_records`](toolplane::Toolplane::withheld_records).
    ///
    /// # Cancellation
    /// When the future is dropped, the connection is closed. Nothing was changed.
    ///
    /// # Errors
    /// When the gateway does not answer.
    pub async fn withheld(self) -> Result<Vec<RawJson>, OperatorClientError> {
        let answer = self.send(Method::GET, "/withheld", None).await?;
        Ok(answer.get("definitions").unwrap_or_default().items().collect())
    }

    /// Accepts the withheld definitions with these digests, in hexadecimal digits, in the name of `by`, and returns them: objects
    /// with `name`, `source` and `digest`. At most 200 fit into one request.
    ///
    /// # Cancellation
    /// When the future is dropped, the connection is closed. The gateway may have done what it was asked.
    ///
    /// # Errors
    /// When the gateway withholds none of them, or cannot store that they are accepted.
    pub async fn accept(self, digests: &[String], by: &str) -> Result<Vec<RawJson>, OperatorClientError> {
        let digests: Vec<_> = digests
            .iter()
            .map(|digest| RawJson::from(digest.as_str()))
            .collect();
        let body = [
            ("digests", RawJson::from_items(&digests)),
            ("by", RawJson::from(by)),
        ];
        let answer = self
            .send(Method::POST, "/accept", Some(RawJson::from_members(&body)))
            .await?;
        Ok(answer.get("definitions").unwrap_or_default().items().collect())
    }

    /// Disables a tool: see [`Toolplane::disable`](toolplane::Toolplane::disable).
    ///
    /// # Cancellation
    /// When the future is dropped, the connection is closed. The gateway may have done what it was asked.
    ///
    /// # Errors
    /// When the gateway knows no such tool.
    pub async fn disable(self, tool: &str, reason: Option<&str>) -> Result<(), OperatorClientError> {
        let mut body = vec![("tool", RawJson::from(tool))];
        body.extend(reason.map(|reason| ("reason", RawJson::from(reason))));
        self.send(Method::POST, "/disable", Some(RawJson::from_members(&body)))
            .await
            .map(drop)
    }

    /// Enables a disabled tool.
    ///
    /// # Cancellation
    /// When the future is dropped, the connection is closed. The gateway may have done what it was asked.
    ///
    /// # Errors
    /// When the tool is not disabled.
    pub async fn enable(self, tool: &str) -> Result<(), OperatorClientError> {
        let body = RawJson::from_members(&[("tool", RawJson::from(tool))]);
        self.send(Method::POST, "/enable", Some(body)).await.map(drop)
    }

    /// Returns the calls with an unknown outcome, latest first: see
    /// [`Toolplane::ledger_record`](toolplane::Toolplane::ledger_record).
    ///
    /// # Cancellation
    /// When the future is dropped, the connection is closed. Nothing was changed.
    ///
    /// # Errors
    /// When the gateway does not answer.
    pub async fn unknown_outcomes(self) -> Result<Vec<RawJson>, OperatorClientError> {
        let answer = self.send(Method::GET, "/ledger", None).await?;
        Ok(answer.get("calls").unwrap_or_default().items().collect())
    }

    /// Returns the ledger entry of the call with this id.
    ///
    /// # Cancellation
    /// When the future is dropped, the connection is closed. Nothing was changed.
    ///
    /// # Errors
    /// When there is none.
    pub async fn ledger_entry(self, id: CorrelationId) -> Result<RawJson, OperatorClientError> {
        self.send(Method::GET, &format!("/ledger/{id}"), None).await
    }

    /// Sends a request of the protocol of command endpoints, and returns the reply. The gateway must have been built with the
    /// feature `endpoint`.
    ///
    /// # Cancellation
    /// When the future is dropped, the connection is closed, and the gateway cancels a call. The tool may have run.
    ///
    /// # Errors
    /// When the gateway does not answer, refuses the request because it is busy, or does not know the protocol.
    pub async fn endpoint(self, request: &[u8]) -> Result<RawJson, OperatorClientError> {
        let body = Bytes::copy_from_slice(request);
        self.send_bytes(Method::POST, "/endpoint", body).await
    }

    /// Returns all approvals of calls, pending and decided.
    ///
    /// # Cancellation
    /// When the future is dropped, the connection is closed. Nothing was changed.
    ///
    /// # Errors
    /// When the gateway does not answer.
    pub async fn approvals(self) -> Result<Vec<RawJson>, OperatorClientError> {
        let answer = self.send(Method::GET, "/approvals", None).await?;
        let all = answer.get("approvals").unwrap_or_default();
        Ok(all.items().collect())
    }

    /// Approves or denies a call, and returns the decided approval.
    ///
    /// # Cancellation
    /// When the future is dropped, the connection is closed. The gateway may have done what it was asked.
    ///
    /// # Errors
    /// When there is no such call, or it was decided already.
    pub async fn decide(
        self,
        handle: &str,
        is_approved: bool,
        by: &str,
        reason: Option<&str>,
    ) -> Result<RawJson, OperatorClientError> {
        let verdict = if is_approved { "approve" } else { "deny" };
        let mut body = vec![("by", RawJson::from(by))];
        body.extend(reason.map(|reason| ("reason", RawJson::from(reason))));
        let path = format!("/approvals/{handle}/{verdict}");
        self.send(Method::POST, &path, Some(RawJson::from_members(&body)))
            .await
    }

    async fn send(
        self,
        method: Method,
        path: &str,
        body: Option<RawJson>,
    ) -> Result<RawJson, OperatorClientError> {
        let body = body.map_or_else(Bytes::new, |body| body.as_bytes().clone());
        self.send_bytes(method, path, body).await
    }

    async fn send_bytes(
        self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<RawJson, OperatorClientError> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .body(Full::new(body))
            .map_err(unreachable)?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(self.0))
            .await
            .map_err(unreachable)?;
        let exchange = async {
            let answer = sender.send_request(request).await.map_err(unreachable)?;
            let is_success = answer.status().is_success();
            let body = Limited::new(answer.into_body(), MAX_ANSWER).collect().await;
            let bytes = body.map_err(OperatorClientError::Unreachable)?.to_bytes();
            Ok((is_success, RawJson::parse(bytes).map_err(unreachable)?))
        };
        // The connection may end before its last byte is read, so only the end of the exchange counts.
        let connection = async {
            let _ = connection.await;
            std::future::pending::<Result<(bool, RawJson), OperatorClientError>>().await
        };
        let (is_success, answer) = tokio::select! {
            answer = exchange => answer?,
            never = connection => never?,
        };
        if is_success {
            return Ok(answer);
        }
        let error = answer.get("error").unwrap_or_default();
        let text = |key: &str| error.get(key).and_then(|text| text.string());
        Err(OperatorClientError::Refused {
            kind: text("kind").unwrap_or_default(),
            message: text("message").unwrap_or_default(),
        })
    }
}

fn unreachable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> OperatorClientError {
    OperatorClientError::Unreachable(error.into())
}
