//! Handshake: detects the era of the server and exchanges information about both sides.

use std::{pin::pin, time::Duration};

use mcp_wire::{Era, Revision, RpcError, code, method};
use tokio::time::timeout;

use super::{
    Link,
    server_info::{initialize_params, modern_meta},
};
use crate::{ClientError, ClientErrorKind, Connection, EraChoice, RequestOptions, ServerInfo};

impl Connection {
    /// Opens the connection in the configured era, or detects the era of the server.
    pub(crate) async fn handshake(&self) -> Result<ServerInfo, ClientError> {
        match (self.options().era, self.link()) {
            (EraChoice::Legacy, _) => self.initialize().await,
            (EraChoice::Modern, _) => self.discover(self.options().start_timeout).await,
            #[cfg(feature = "http")]
            (EraChoice::Auto | EraChoice::Newest, Link::Http(_)) => self.modern_first().await,
            (EraChoice::Newest, Link::Stream(_)) => self.race_eras().await,
            (EraChoice::Auto, Link::Stream(_)) => self.legacy_first().await,
        }
    }

    /// Tries `server/discover` and then `initialize`, unless the error can only come from a modern server.
    #[cfg(feature = "http")]
    async fn modern_first(&self) -> Result<ServerInfo, ClientError> {
        let limit = (self.options().start_timeout / 2).min(PROBE_TIMEOUT);
        match self.discover(limit).await {
            Err(error) if may_be_legacy(&error) => self.initialize().await,
            done => done,
        }
    }

    /// Tries both eras at once over stdio. A silent server may still be starting, or may ignore methods that it does
    /// not know. Both requests are answered in order, and the first success decides the era.
    async fn race_eras(&self) -> Result<ServerInfo, ClientError> {
        let mut modern = pin!(self.discover(self.options().start_timeout));
        if let Ok(done) = timeout(PROBE_TIMEOUT, &mut modern).await {
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
                // If both eras fail, the error of the first is returned: most servers are legacy.
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
            .request_with_meta(method::INITIALIZE, Some(&params), None, options)
            .await?;
        ServerInfo::from_initialize(&result)
    }

    async fn discover(&self, limit: Duration) -> Result<ServerInfo, ClientError> {
        let meta = modern_meta(self.options(), Revision::LATEST);
        let ask = || {
            self.request_with_meta(
                method::DISCOVER,
                None,
                Some(&meta),
                RequestOptions::with_timeout(limit),
            )
        };
        let result = match ask().await {
            // The server may support the latest revision although it refused the one that it received.
            Err(error) if supported_revisions(&error).contains(&Revision::LATEST) => ask().await?,
            done => done?,
        };
        ServerInfo::from_discover(&result)
    }

    pub(crate) async fn after_handshake(&self) -> Result<(), ClientError> {
        let server = self.server();
        let era = server.era();
        #[cfg(feature = "http")]
        if let Link::Http(link) = self.link() {
            link.opened(server, initialize_params(self.options()));
        }
        if era == Era::Legacy {
            self.notify(method::INITIALIZED, None).await?;
        }
        #[cfg(feature = "http")]
        if let Link::Http(link) = self.link() {
            let has_handlers = !self.options().handlers.is_empty();
            let speaks = server.has_any_list_changed()
                || era == Era::Modern
                || server.has_flag("resources", "subscribe")
                || has_handlers;
            if speaks {
                link.listen(era, has_handlers).await;
            }
        }
        if era == Era::Modern && server.has_any_list_changed() {
            self.renew_subscription();
        }
        Ok(())
    }

    /// Converts the failure of a health check into the error of a start.
    pub(crate) fn health_check_error(&self, error: ClientError) -> ClientError {
        let error = match error.kind() {
            ClientErrorKind::Unhealthy(_) | ClientErrorKind::Auth { .. } => error,
            _ => ClientError::new(ClientErrorKind::Unhealthy(error.to_string())).with_quoted_source(error),
        };
        self.start_error(error)
    }

    /// Converts an error of the handshake into the error of a start, with the stderr of a child process, which often
    /// names the cause.
    pub(crate) fn start_error(&self, error: ClientError) -> ClientError {
        if matches!(
            error.kind(),
            ClientErrorKind::Auth { .. }
                | ClientErrorKind::HttpStatus { .. }
                | ClientErrorKind::Unreachable(_)
        ) {
            return error.with_sent(false);
        }
        let stderr = self.stderr_tail().unwrap_or_default();
        let reason = match error.kind() {
            // A start error implies that the connection is closed.
            ClientErrorKind::Closed(reason) => reason.clone(),
            _ => error.to_string(),
        };
        ClientError::new(ClientErrorKind::StartFailed { reason, stderr }).with_quoted_source(error)
    }
}

/// Time after which a server that does not respond to `server/discover` is assumed to be a legacy one.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Revisions that a server names when it refuses the one it was sent.
fn supported_revisions(error: &ClientError) -> Vec<Revision> {
    let refusal = error
        .as_rpc()
        .filter(|error| error.code == code::UNSUPPORTED_PROTOCOL_VERSION);
    let data = refusal.and_then(|error| error.data.as_ref()?.get("supported"));
    let names = data.into_iter().flat_map(|list| list.items().collect::<Vec<_>>());
    names.filter_map(|name| name.string()?.parse().ok()).collect()
}

/// `true` if an error of `server/discover` may come from a legacy server: any error except those that only modern
/// servers or both eras send.
fn may_be_legacy(error: &ClientError) -> bool {
    let is_modern = |error: &RpcError| {
        matches!(
            error.code,
            code::HEADER_MISMATCH | code::MISSING_CLIENT_CAPABILITY | code::UNSUPPORTED_PROTOCOL_VERSION
        )
    };
    match error.kind() {
        ClientErrorKind::Auth { .. } | ClientErrorKind::Unreachable(_) => false,
        ClientErrorKind::Rpc(refusal) if is_modern(refusal) => supported_revisions(error)
            .iter()
            .any(|revision| revision.era() == Era::Legacy),
        _ => true,
    }
}

/// `true` if an error of `initialize` may come from a modern server.
fn is_other_era(error: &ClientError) -> bool {
    match error.kind() {
        ClientErrorKind::Rpc(_) | ClientErrorKind::Unsupported(_) => true,
        _ => error
            .http_status()
            .is_some_and(|(status, _)| (400..500).contains(&status)),
    }
}
