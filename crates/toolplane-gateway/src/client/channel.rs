//! The channel back to the client of a call.

use std::{sync::Arc, time::Duration};

use mcp_server::{ClientHandle, ClientRequestError, ProgressReporter, RequestContext};
use mcp_wire::{LogLevel, RpcError};
use raw_json::RawJson;
use tokio::time::timeout;
use toolplane::core::{Ask, AskError, BoxFuture, ClientKey, Progress, Question};

use super::key::client_key;

/// Time that a client has to answer a question. A person is asked, who may have to look something up.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// Capabilities by which a client declares that it can be asked something.
const ASKABLE: [&str; 3] = ["elicitation", "sampling", "roots"];

/// The client of a request that is in progress: a legacy client can be asked and receives logs, a modern one receives logs
/// only.
///
/// Questions to modern clients go through a `Dialogue`.
pub(crate) struct ClientChannel {
    handle: ClientHandle,
    key: ClientKey,
    capabilities: RawJson,
}

impl ClientChannel {
    /// Returns the channel to the client of a request, or `None` if the client can neither be asked nor wants logs.
    pub(crate) fn open(cx: &RequestContext) -> Option<Arc<dyn Ask>> {
        if !cx.has_back_channel() {
            return None;
        }
        let handle = cx.client();
        Some(Arc::new(Self {
            key: client_key(cx),
            capabilities: askable_capabilities(handle.capabilities()),
            handle,
        }))
    }
}

impl Ask for ClientChannel {
    fn client(&self) -> ClientKey {
        self.key.clone()
    }

    fn capabilities(&self) -> RawJson {
        self.capabilities.clone()
    }

    fn ask(&self, question: Question) -> BoxFuture<'_, Result<RawJson, AskError>> {
        Box::pin(async move {
            let answer = self.handle.ask(&question.method, question.params.as_ref());
            match timeout(ANSWER_TIMEOUT, answer).await {
                Ok(answer) => answer.map_err(ask_error),
                Err(_) => Err(AskError::Unanswered),
            }
        })
    }

    fn log_level(&self) -> Option<Arc<str>> {
        Some(self.handle.log_level()?.as_str().into())
    }

    fn log(&self, message: &RawJson) {
        forward_log(&self.handle, message);
    }
}

/// Reports the progress of a tool to the client of a request.
pub(crate) struct ProgressChannel(pub(crate) ProgressReporter);

impl Progress for ProgressChannel {
    fn report(&self, report: RawJson) {
        self.0.report(&report);
    }
}

/// Returns the capabilities by which a client can be asked something, out of all that it declared.
pub(crate) fn askable_capabilities(declared: Option<&RawJson>) -> RawJson {
    let members: Vec<(&str, RawJson)> = ASKABLE
        .iter()
        .filter_map(|key| Some((*key, declared?.get(key)?)))
        .collect();
    RawJson::from_members(&members)
}

/// Forwards a server's log message to a client, at the level that the message has. A message without a level is dropped.
pub(crate) fn forward_log(handle: &ClientHandle, message: &RawJson) {
    let level = message.get("level").and_then(|level| level.string());
    let level: Option<LogLevel> = level.and_then(|level| level.parse().ok());
    if let Some(level) = level {
        handle.log(level, message);
    }
}

/// Returns the client's own error as JSON, as the client wrote it.
fn error_json(error: &RpcError) -> RawJson {
    let mut members = vec![
        (
            "code",
            RawJson::from_serialize(&error.code).expect("a number can be written"),
        ),
        ("message", RawJson::from(error.message.as_str())),
    ];
    members.extend(error.data.clone().map(|data| ("data", data)));
    RawJson::from_members(&members)
}

fn ask_error(error: ClientRequestError) -> AskError {
    match error {
        ClientRequestError::NotDeclared(error) => AskError::Impossible(error.message),
        ClientRequestError::Refused(error) => AskError::Refused(error_json(&error)),
        ClientRequestError::Disconnected => AskError::Unanswered,
        other => AskError::Impossible(other.to_string()),
    }
}
