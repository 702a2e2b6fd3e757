//! The way back to the client of a call.

use std::{sync::Arc, time::Duration};

use mcp_server::{ClientHandle, ClientRequestError, Peer, RequestContext};
use mcp_wire::{LogLevel, RpcError};
use raw_json::RawJson;
use tokio::time::timeout;
use toolplane::core::{Ask, AskError, BoxFuture, ClientCapabilities, ClientKey, Question};

/// How long a client may take to answer a question: 10 min. A person is asked, who may have to look something up.
pub(crate) const ANSWER: Duration = Duration::from_secs(10 * 60);
/// What a client may declare that it can be asked.
const ASKABLE: [&str; 3] = ["elicitation", "sampling", "roots"];

/// The client of a request, asked and told while the request is worked on: a legacy one, or one that is only told.
pub(crate) struct Direct {
    handle: ClientHandle,
    key: ClientKey,
    capabilities: RawJson,
}

impl Direct {
    /// The way back of a request, if there is anything to ask its client or to tell it.
    pub(crate) fn of(cx: &RequestContext) -> Option<Arc<dyn Ask>> {
        if !cx.has_back_channel() {
            return None;
        }
        let handle = cx.client();
        Some(Arc::new(Self {
            key: key(cx),
            capabilities: askable(handle.capabilities()),
            handle,
        }))
    }
}

impl Ask for Direct {
    fn client(&self) -> ClientKey {
        self.key.clone()
    }

    fn capabilities(&self) -> RawJson {
        self.capabilities.clone()
    }

    fn ask(&self, question: Question) -> BoxFuture<'_, Result<RawJson, AskError>> {
        Box::pin(async move {
            let asked = self.handle.ask(&question.method, question.params.as_ref());
            match timeout(ANSWER, asked).await {
                Ok(answer) => answer.map_err(why_not),
                Err(_) => Err(AskError::Unanswered),
            }
        })
    }

    fn log_level(&self) -> Option<Arc<str>> {
        Some(self.handle.log_level()?.as_str().into())
    }

    fn log(&self, message: &RawJson) {
        log(&self.handle, message);
    }
}

/// Which client a request is of: its connection or session, or any of its principal's where requests belong to none.
pub(crate) fn key(cx: &RequestContext) -> ClientKey {
    match cx.connection_name() {
        Some(name) => ClientKey::Session(name.clone()),
        None => ClientKey::Principal(cx.principal().name().clone()),
    }
}

/// The questions that the client of a request declared to answer.
pub(crate) fn capabilities(cx: &RequestContext) -> ClientCapabilities {
    let declared = cx.client_capabilities();
    declared.as_ref().map(ClientCapabilities::from_json).unwrap_or_default()
}

/// Which client is at the other end, as [`key`] says of its requests.
pub(crate) fn key_of(peer: &Peer) -> ClientKey {
    match peer.connection {
        Some(number) => of_connection(number),
        None => ClientKey::Principal(peer.principal.name().clone()),
    }
}

/// The client of a connection or session.
pub(crate) fn of_connection(number: u64) -> ClientKey {
    ClientKey::Session(number.to_string().into())
}

/// The connection or session of a client, if it has one.
pub(crate) fn connection_of(client: &ClientKey) -> Option<u64> {
    match client {
        ClientKey::Session(name) => name.parse().ok(),
        ClientKey::Principal(_) => None,
    }
}

/// Of what a client declared, what it can be asked.
pub(crate) fn askable(capabilities: Option<&RawJson>) -> RawJson {
    let members: Vec<(&str, RawJson)> = ASKABLE
        .iter()
        .filter_map(|key| Some((*key, capabilities?.get(key)?)))
        .collect();
    RawJson::from_members(&members)
}

/// Passes on a server's log message under the level that it has.
pub(crate) fn log(handle: &ClientHandle, message: &RawJson) {
    let level = message.get("level").and_then(|level| level.string());
    let level: Option<LogLevel> = level.and_then(|level| level.parse().ok());
    if let Some(level) = level {
        handle.log(level, message);
    }
}

/// The client's own error, as it wrote it.
fn refused(error: &RpcError) -> RawJson {
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

fn why_not(error: ClientRequestError) -> AskError {
    match error {
        ClientRequestError::NotDeclared(error) => AskError::Impossible(error.message),
        ClientRequestError::Refused(error) => AskError::Refused(refused(&error)),
        ClientRequestError::Disconnected => AskError::Unanswered,
        other => AskError::Impossible(other.to_string()),
    }
}
