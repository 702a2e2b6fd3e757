use std::sync::{Arc, atomic::Ordering};

use futures_util::future::join_all;
use mcp_client::{ClientError, Connection, Endpoint, RequestOptions};
use mcp_wire::{Era, Params};
use raw_json::RawJson;
use tool_core::{CallContext, Catalogue, ClientIdentity, ClientKey, ErrorKind, ToolError};

use super::{
    ConnectError, Connections, PoolKey, ServerConnection,
    acquire::{AcquireRequest, AcquireResult},
    call_slots::{CallSlot, PendingWork},
};
use crate::{
    Isolation,
    listing::{ClientListReader, EntryKey},
};

/// A connection that one call may use until this is dropped.
pub(crate) struct Checkout {
    /// For what is known of the server: requests of the call are made by [`Checkout::request`].
    pub(crate) connection: Connection,
    server_connection: Arc<ServerConnection>,
    slot: CallSlot,
}

impl Checkout {
    /// Where the connection is kept.
    pub(crate) fn server_connection(&self) -> &Arc<ServerConnection> {
        &self.server_connection
    }

    /// Notes that the server works on something of the call beside a request, see [`ServerConnection::open`].
    pub(crate) fn begin_work(&self) -> Option<PendingWork<'_>> {
        self.server_connection.begin_work(&self.connection, &self.slot)
    }

    /// Whether the server speaks another era by now, in which another checkout is then.
    pub(crate) async fn finds_other_era(&self) -> bool {
        self.server_connection
            .upstream
            .finds_other_era(&self.connection)
            .await
    }

    /// Makes a request for the call, see [`Connection::request`]. Questions and log messages that the server has
    /// meanwhile go to the caller's client; the time that it takes to answer does not count against the timeout.
    pub(crate) fn request<'a>(
        &'a self,
        method: &'a str,
        params: impl Into<Params>,
        options: RequestOptions,
    ) -> impl Future<Output = Result<RawJson, ClientError>> + Send + 'a {
        self.server_connection
            .request(&self.connection, &self.slot, (method, params.into()), options)
    }
}

impl Connections {
    /// The connection that a call is to use: the shared one, or one of its client's own.
    pub(crate) async fn checkout(self: &Arc<Self>, cx: &CallContext) -> Result<Checkout, ToolError> {
        let explained = |error: ConnectError| error.into_tool_error(cx, &self.settings.name);
        // What has to be waited for is rare: most calls find a connection that is open.
        let dedicated = match self.pool_key(cx.client_identity()) {
            Some(client) => Box::pin(self.dedicated_connection(cx, client)).await?,
            None => None,
        };
        let (server_connection, slot) = match dedicated {
            Some(acquired) => acquired,
            None => {
                let server_connection = match self.usable_shared() {
                    Some(server_connection) => server_connection,
                    None => Box::pin(self.shared()).await.map_err(explained)?,
                };
                (server_connection.clone(), server_connection.slots.begin(cx))
            }
        };
        let connection = match server_connection.ready_now(&slot.call) {
            Some(connection) => connection,
            None => Box::pin(server_connection.ready_for(&slot.call))
                .await
                .map_err(|error| explained(ConnectError::Client(error)))?,
        };
        Ok(Checkout {
            connection,
            server_connection,
            slot,
        })
    }

    /// A place on a connection of the caller's client alone; nothing when the call is to share.
    pub(crate) async fn dedicated_connection(
        self: &Arc<Self>,
        cx: &CallContext,
        client: PoolKey,
    ) -> Result<Option<(Arc<ServerConnection>, CallSlot)>, ToolError> {
        let explained = |error: ConnectError| error.into_tool_error(cx, &self.settings.name);
        let may_share = self.settings.isolation == Isolation::Auto;
        // A call in which nobody can be asked needs no connection of its own, and goes where the lists of its client
        // come from.
        if may_share && cx.origin.ask.is_none() && self.pool.of_key(&client).is_empty() {
            return Ok(None);
        }
        if may_share && self.open_shared().await.map_err(explained)?.server().era() == Era::Modern {
            return Ok(None);
        }
        let endpoint = self.endpoint().await.map_err(explained)?;
        let open = || self.open_dedicated(&endpoint, &client, cx);
        let most = self.settings.max_connections;
        let entry = EntryKey::from_descriptor(cx.tool().descriptor());
        // The shared connection does not know what the client's own connections list alone.
        let may_share = may_share && !self.client_lists.lists_exclusively(&client, &entry);
        let acquired = match client.is_exclusive {
            true => {
                let request = AcquireRequest {
                    client: &client,
                    cx,
                    entry,
                    most,
                    may_share,
                    open: &open,
                };
                match self.pool.acquire_exclusive(request).await {
                    AcquireResult::Acquired(server_connection, slot) => Some((server_connection, slot)),
                    AcquireResult::Full => None,
                    AcquireResult::Failed(error) => return Err(explained(ConnectError::Client(error))),
                    AcquireResult::Stopped => return Err(self.stopped()),
                }
            }
            false => self.pool.acquire(&client, cx, most, open).await,
        };
        let Some((server_connection, slot)) = acquired else {
            if may_share && !cx.is_hedge {
                tracing::debug!(
                    server = self.settings.name,
                    "all connections for single clients are in use: a call shares"
                );
                return Ok(None);
            }
            let message = format!(
                "all {most} connections to the server `{}` are in use",
                self.settings.name
            );
            return Err(ToolError::new(ErrorKind::Overloaded, message));
        };
        self.shutdown_if_stopped(&server_connection).await;
        Ok(Some((server_connection, slot)))
    }

    fn stopped(&self) -> ToolError {
        let message = format!("the server `{}` was shut down", self.settings.name);
        ToolError::new(ErrorKind::Unavailable, message)
    }

    /// A connection for this client, whose lists are read as soon as it is open.
    fn open_dedicated(
        self: &Arc<Self>,
        endpoint: &Endpoint,
        client: &PoolKey,
        cx: &CallContext,
    ) -> Arc<ServerConnection> {
        let asked = cx.origin.ask.as_ref().map(|asker| asker.client().capabilities());
        let declared = asked.unwrap_or_else(|| client.identity.capabilities.to_json());
        let keeps_roots = matches!(client.identity.key, ClientKey::Session(_));
        let (options, notifier) = (self.upstream_options(), self.notifier.clone());
        let server_connection = ServerConnection::dedicated(
            endpoint.clone(),
            options,
            notifier,
            client.group(),
            &declared,
            keeps_roots,
        );
        let reader = ClientListReader {
            settings: self.settings.clone(),
            lists: self.client_lists.clone(),
            connections: Arc::downgrade(self),
            client: client.clone(),
            server_connection: Arc::downgrade(&server_connection),
            number: self.n_dedicated_opened.fetch_add(1, Ordering::Relaxed),
        };
        tokio::spawn(reader.run());
        server_connection
    }

    /// The client that a connection is kept for; `None` when calls of this client share.
    pub(crate) fn pool_key(&self, mut identity: ClientIdentity) -> Option<PoolKey> {
        let is_principal = self.settings.isolation == Isolation::Principal;
        match self.settings.isolation {
            Isolation::Shared => return None,
            Isolation::Auto if identity.capabilities.is_empty() => return None,
            Isolation::Auto | Isolation::Session => {}
            Isolation::Principal => identity.key = ClientKey::Principal(identity.principal.clone()),
        }
        Some(PoolKey {
            is_exclusive: matches!(identity.key, ClientKey::Principal(_)) && !is_principal,
            is_principal,
            identity,
        })
    }

    /// Returns the lists of a client that has connections of its own, `None` where they are the shared ones.
    pub(crate) fn lists_for(&self, identity: &ClientIdentity) -> Option<Arc<Catalogue>> {
        self.client_lists.get(&self.pool_key(identity.clone())?)
    }

    /// Waits until the lists of a client's own connections are read again that have changed.
    pub(crate) async fn refresh_lists_for(&self, identity: &ClientIdentity) {
        let Some(client) = self.pool_key(identity.clone()) else {
            return;
        };
        let dedicated = self.pool.of_key(&client);
        join_all(dedicated.iter().map(|connection| {
            connection
                .lists
                .refreshed(*connection.upstream.changes().borrow())
        }))
        .await;
    }
}
