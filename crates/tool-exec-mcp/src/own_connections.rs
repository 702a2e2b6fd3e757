//! Connections that are kept for single clients.

use std::sync::{Arc, atomic::Ordering};

use futures_util::future::join_all;
use mcp_client::Endpoint;
use mcp_wire::Era;
use tool_core::{CallContext, Catalogue, ClientIdentity, ClientKey, ErrorKind, ToolError};

use crate::{
    Isolation,
    calls::Seat,
    connections::{Connections, Unreachable},
    line::Line,
    own_listing::OwnListReader,
    own_lists::Entry,
    pool::Client,
    queue::{Turn, Wanted},
};

impl Connections {
    /// A place on a connection of the caller's client alone; nothing when the call is to share.
    pub(crate) async fn own_line(
        self: &Arc<Self>,
        cx: &CallContext,
        client: Client,
    ) -> Result<Option<(Arc<Line>, Seat)>, ToolError> {
        let explained = |error: Unreachable| error.into_tool_error(cx, &self.settings.name);
        let may_share = self.settings.isolation == Isolation::Auto;
        // A call in which nobody can be asked needs no connection of its own, and goes where the lists of its client
        // come from.
        if may_share && cx.origin.ask.is_none() && self.own.serving(&client).is_empty() {
            return Ok(None);
        }
        if may_share && self.shared().await.map_err(explained)?.server().era() == Era::Modern {
            return Ok(None);
        }
        let endpoint = self.endpoint().await.map_err(explained)?;
        let open = || self.open_own(&endpoint, &client, cx);
        let most = self.settings.max_connections;
        let entry = Entry::of(cx.tool().descriptor());
        // The shared connection does not know what the client's own connections list alone.
        let may_share = may_share && !self.own_lists.has_alone(&client, &entry);
        let place = match client.alone {
            true => {
                let wanted = Wanted {
                    client: &client,
                    cx,
                    entry,
                    most,
                    may_share,
                    open: &open,
                };
                match self.own.turn(wanted).await {
                    Turn::Seated(line, seat) => Some((line, seat)),
                    Turn::Full => None,
                    Turn::Failed(error) => return Err(explained(Unreachable::Client(error))),
                    Turn::Stopped => return Err(self.stopped()),
                }
            }
            false => self.own.seat(&client, cx, most, open).await,
        };
        let Some((line, seat)) = place else {
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
        self.end_if_stopped(&line).await;
        Ok(Some((line, seat)))
    }

    fn stopped(&self) -> ToolError {
        let message = format!("the server `{}` was shut down", self.settings.name);
        ToolError::new(ErrorKind::Unavailable, message)
    }

    /// A connection for this client, whose lists are read as soon as it is open.
    fn open_own(self: &Arc<Self>, endpoint: &Endpoint, client: &Client, cx: &CallContext) -> Arc<Line> {
        let asked = cx.origin.ask.as_ref().map(|asker| asker.client().capabilities());
        let declared = asked.unwrap_or_else(|| client.identity.capabilities.to_json());
        let keeps_roots = matches!(client.identity.key, ClientKey::Session(_));
        let (options, updates) = (self.options(), self.updates.clone());
        let line = Line::own(
            endpoint.clone(),
            options,
            updates,
            client.group(),
            &declared,
            keeps_roots,
        );
        let reader = OwnListReader {
            settings: self.settings.clone(),
            lists: self.own_lists.clone(),
            connections: Arc::downgrade(self),
            client: client.clone(),
            line: Arc::downgrade(&line),
            number: self.n_opened.fetch_add(1, Ordering::Relaxed),
        };
        tokio::spawn(reader.run());
        line
    }

    /// The client that a connection is kept for; `None` when calls of this client share.
    pub(crate) fn kept_for(&self, mut identity: ClientIdentity) -> Option<Client> {
        let is_principal = self.settings.isolation == Isolation::Principal;
        match self.settings.isolation {
            Isolation::Shared => return None,
            Isolation::Auto if identity.capabilities.is_empty() => return None,
            Isolation::Auto | Isolation::Session => {}
            Isolation::Principal => identity.key = ClientKey::Principal(identity.principal.clone()),
        }
        Some(Client {
            alone: matches!(identity.key, ClientKey::Principal(_)) && !is_principal,
            is_principal,
            identity,
        })
    }

    /// Returns the lists of a client that has connections of its own, `None` where they are the shared ones.
    pub(crate) fn lists_of(&self, identity: &ClientIdentity) -> Option<Arc<Catalogue>> {
        self.own_lists.get(&self.kept_for(identity.clone())?)
    }

    /// Waits until the lists of a client's own connections are read again that have changed.
    pub(crate) async fn refresh_lists_of(&self, identity: &ClientIdentity) {
        let Some(client) = self.kept_for(identity.clone()) else {
            return;
        };
        let lines = self.own.serving(&client);
        join_all(lines.iter().map(|line| line.listing.refreshed(line))).await;
    }
}
