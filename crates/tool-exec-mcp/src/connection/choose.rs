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

/// Connection that one call may use until this is dropped.
pub(crate) struct Checkout {
    /// Protocol connection, for facts about the server. Requests of the call go through [`Checkout::request`].
    pub(crate) connection: Connection,
    server_connection: Arc<ServerConnection>,
    slot: CallSlot,
}

impl Checkout {
    /// Returns the connection with its other calls.
    pub(crate) fn server_connection(&self) -> &Arc<ServerConnection> {
        &self.server_connection
    }

    /// Records that the server works on something of the call outside of a request, see
    /// [`ServerConnection::begin_work`].
    pub(crate) fn begin_work(&self) -> Option<PendingWork<'_>> {
        self.server_connection.begin_work(&self.connection, &self.slot)
    }

    /// Returns `true` if the server speaks another era by now. Another checkout then uses that era.
    pub(crate) async fn detect_era_change(&self) -> bool {
        self.server_connection
            .upstream
            .detect_era_change(&self.connection)
            .await
    }

    /// Makes a request for the call, see [`Connection::request`]. Meanwhile, the server's questions and log messages go
    /// to the caller's client. The time that the client takes to answer does not count against the timeout.
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
    /// Chooses the connection for a call: the shared one, or a dedicated one of its client.
    pub(crate) async fn checkout(self: &Arc<Self>, cx: &CallContext) -> Result<Checkout, ToolError> {
        let explained = |error: ConnectError| error.into_tool_error(cx, &self.settings.name);
        // Boxed, since waiting is rare: most calls find an open connection.
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

    /// Returns a slot on a dedicated connection of the caller's client, or `None` if the call is to use the shared one.
    pub(crate) async fn dedicated_connection(
        self: &Arc<Self>,
        cx: &CallContext,
        client: PoolKey,
    ) -> Result<Option<(Arc<ServerConnection>, CallSlot)>, ToolError> {
        let explained = |error: ConnectError| error.into_tool_error(cx, &self.settings.name);
        let may_share = self.settings.isolation == Isolation::Auto;
        // A call in which nobody can be asked needs no dedicated connection. It goes where the lists of its client come
        // from.
        if may_share && cx.origin.ask.is_none() && self.pool.for_key(&client).is_empty() {
            return Ok(None);
        }
        if may_share && self.open_shared().await.map_err(explained)?.server().era() == Era::Modern {
            return Ok(None);
        }
        let endpoint = self.endpoint().await.map_err(explained)?;
        let open = || self.open_dedicated(&endpoint, &client, cx);
        let most = self.settings.max_connections;
        let entry = EntryKey::from_descriptor(cx.tool().descriptor());
        // The shared connection does not know the entries that only the client's dedicated connections list.
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
                    "all dedicated connections are in use: a call uses the shared one"
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

    /// Opens a dedicated connection for this client. Its lists are read as soon as it is open.
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

    /// Returns the key of the client's dedicated connections, or `None` if its calls use the shared one.
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

    /// Returns the lists of a client with dedicated connections, or `None` if it sees the shared ones.
    pub(crate) fn lists_for(&self, identity: &ClientIdentity) -> Option<Arc<Catalogue>> {
        self.client_lists.get(&self.pool_key(identity.clone())?)
    }

    /// Waits until the changed lists of a client's dedicated connections are read again.
    pub(crate) async fn refresh_lists_for(&self, identity: &ClientIdentity) {
        let Some(client) = self.pool_key(identity.clone()) else {
            return;
        };
        let dedicated = self.pool.for_key(&client);
        join_all(dedicated.iter().map(|connection| {
            connection
                .lists
                .wait_until_refreshed(*connection.upstream.changes().borrow())
        }))
        .await;
    }
}
