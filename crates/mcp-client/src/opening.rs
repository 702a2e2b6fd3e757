//! How a connection is opened: which era the server speaks, and what both sides say of themselves.

use std::{pin::pin, time::Duration};

use mcp_wire::{Era, Revision, RpcError, code, method};
use tokio::time::timeout;

use crate::{
    ClientError, ClientErrorKind, Connection, EraChoice, RequestOptions, ServerInfo,
    connection::Link,
    server::{initialize_params, modern_meta},
};

impl Connection {
    /// Finds out which era the server speaks, and opens the connection in it.
    pub(crate) async fn handshake(&self) -> Result<ServerInfo, ClientError> {
        match (self.options().era, self.link()) {
            (EraChoice::Legacy, _) => self.initialize().await,
            (EraChoice::Modern, _) => self.discover(self.options().start_timeout).await,
            (EraChoice::Auto | EraChoice::Newest, Link::Http(_)) => self.modern_first().await,
            (EraChoice::Newest, Link::Stream(_)) => self.both().await,
            (EraChoice::Auto, Link::Stream(_)) => self.legacy_first().await,
        }
    }

    /// Only what a modern server alone would say keeps from trying the other era.
    async fn modern_first(&self) -> Result<ServerInfo, ClientError> {
        let limit = (self.options().start_timeout / 2).min(PROBE);
        match self.discover(limit).await {
            Err(error) if may_be_legacy(&error) => self.initialize().await,
            done => done,
        }
    }

    /// Over stdio a server that is silent may still be starting, or never answer what it does not know. Which of the
    /// two it is does not matter: it reads both questions in order, and its first good answer says what it speaks.
    async fn both(&self) -> Result<ServerInfo, ClientError> {
        let mut modern = pin!(self.discover(self.options().start_timeout));
        if let Ok(done) = timeout(PROBE, &mut modern).await {
            return match done {
                Err(error) if may_be_legacy(&error) => self.initialize().await,
                done => done,
            };
        }
        let mut legacy = pin!(self.initialize());
        tokio::select! {
            biased;
            done = &mut modern => match done {
                Err(error) if may_be_legacy(&error) => legacy.await,
                done => done,
            },
            done = &mut legacy => match done {
                Ok(server) => Ok(server),
                Err(error) => modern.await.map_err(|_| error),
            },
        }
    }

    async fn legacy_first(&self) -> Result<ServerInfo, ClientError> {
        match self.initialize().await {
            Err(error) if is_other_era(&error) => {
                // What the first try said is told when the second fails too: most servers are legacy.
                let limit = self.options().start_timeout;
                self.discover(limit).await.map_err(|_| error)
            }
            done => done,
        }
    }

    async fn initialize(&self) -> Result<ServerInfo, ClientError> {
        let options = RequestOptions::with_timeout(self.options().start_timeout);
        let params = initialize_params(self.options());
        let result = self
            .send(method::INITIALIZE, Some(&params), None, options)
            .await?;
        ServerInfo::from_initialize(&result)
    }

    async fn discover(&self, limit: Duration) -> Result<ServerInfo, ClientError> {
        let meta = modern_meta(self.options(), Revision::LATEST);
        let ask = || self.send(method::DISCOVER, None, Some(&meta), RequestOptions::with_timeout(limit));
        let result = match ask().await {
            // The server may have had another revision in mind than the one that it was sent.
            Err(error) if supported(&error).contains(&Revision::LATEST) => ask().await?,
            done => done?,
        };
        ServerInfo::from_discover(&result)
    }

    pub(crate) async fn after_handshake(&self) -> Result<(), ClientError> {
        let server = self.server();
        let era = server.era();
        if let Link::Http(link) = self.link() {
            link.opened(server, initialize_params(self.options()));
        }
        if era == Era::Legacy {
            self.notify(method::INITIALIZED, None).await?;
        }
        let has_answers = !self.options().handlers.is_empty();
        let speaks = server.tells_changes()
            || era == Era::Modern
            || server.says("resources", "subscribe")
            || has_answers;
        if let Link::Http(link) = self.link()
            && speaks
        {
            link.listen(era, has_answers).await;
        }
        if era == Era::Modern && server.tells_changes() {
            self.listen_anew();
        }
        Ok(())
    }

    /// The error of a start after which the server did not pass its health check.
    pub(crate) fn check_failed(&self, error: ClientError) -> ClientError {
        let error = match error.kind() {
            ClientErrorKind::Unhealthy(_) | ClientErrorKind::Auth { .. } => error,
            _ => ClientError::new(ClientErrorKind::Unhealthy(error.to_string())).because(error),
        };
        self.start_failed(error)
    }

    /// Words an error of the opening: what a child wrote to stderr often says best what is wrong.
    pub(crate) fn start_failed(&self, error: ClientError) -> ClientError {
        if matches!(
            error.kind(),
            ClientErrorKind::Auth { .. }
                | ClientErrorKind::HttpStatus { .. }
                | ClientErrorKind::Unreachable(_)
        ) {
            return error.sent(false);
        }
        let stderr = self.stderr_tail().unwrap_or_default();
        let reason = match error.kind() {
            // That the connection is closed goes without saying.
            ClientErrorKind::Closed(reason) => reason.clone(),
            _ => error.to_string(),
        };
        ClientError::new(ClientErrorKind::StartFailed { reason, stderr }).because(error)
    }
}

/// How long a server may take to say that it is a modern one before it is taken for a legacy one.
const PROBE: Duration = Duration::from_secs(2);

/// Which revisions a server names that refuses the one it was sent.
fn supported(error: &ClientError) -> Vec<Revision> {
    let refusal = error
        .as_rpc()
        .filter(|error| error.code == code::UNSUPPORTED_PROTOCOL_VERSION);
    let data = refusal.and_then(|error| error.data.as_ref()?.get("supported"));
    let names = data.into_iter().flat_map(|list| list.items().collect::<Vec<_>>());
    names.filter_map(|name| name.string()?.parse().ok()).collect()
}

/// Whether an answer to `server/discover` may come from a server of the other era: any that is no error of modern
/// servers, and none that both eras have in common.
fn may_be_legacy(error: &ClientError) -> bool {
    let is_modern = |error: &RpcError| {
        matches!(
            error.code,
            code::HEADER_MISMATCH | code::MISSING_CLIENT_CAPABILITY | code::UNSUPPORTED_PROTOCOL_VERSION
        )
    };
    match error.kind() {
        ClientErrorKind::Auth { .. } | ClientErrorKind::Unreachable(_) => false,
        ClientErrorKind::Rpc(refusal) if is_modern(refusal) => supported(error)
            .iter()
            .any(|revision| revision.era() == Era::Legacy),
        _ => true,
    }
}

/// Whether a refusal of `initialize` may come from a server of the other era.
fn is_other_era(error: &ClientError) -> bool {
    match error.kind() {
        ClientErrorKind::Rpc(_) | ClientErrorKind::Unsupported(_) => true,
        _ => error
            .http_status()
            .is_some_and(|(status, _)| (400..500).contains(&status)),
    }
}
