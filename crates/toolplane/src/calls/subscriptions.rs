//! Subscriptions to resources, and news from clients.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use raw_json::RawJson;
use tool_core::{
    Caller, ClientGroup, ClientIdentity, ClientKey, ErrorKind, Feature, OnUpdate, Source, Target, Tool,
    ToolError, Update,
};

use tool_registry::Snapshot;

use crate::Toolplane;

impl Toolplane {
    /// Subscribes to updates of a resource, on behalf of a caller that may read it. [`Toolplane::on_update`] receives
    /// them until [`Toolplane::unsubscribe`]. Subscribing again changes nothing.
    ///
    /// # Cancellation
    /// Dropping the future ends the wait. The server may have subscribed already: [`Toolplane::unsubscribe`] is safe.
    ///
    /// # Errors
    /// If there is no such resource, the caller may not read it, reading it needs approval, or its server sends no
    /// updates.
    pub async fn subscribe(&self, uri: &str, caller: &Caller) -> Result<(), ToolError> {
        let target = self.registry().find_resource(uri).await;
        let target = target.ok_or_else(|| self.not_found(Feature::Resource, uri, caller))?;
        self.admit_subscription(&target, caller)?;
        let source = self.source_of(&target).ok_or_else(|| gone(uri))?;
        source.subscribe(uri).await
    }

    /// Subscribes to updates of a resource, on behalf of a caller that may read it and of its client. They arrive
    /// over the connection of the client where it has one, until [`Toolplane::end_unwatched`]; otherwise this equals
    /// [`Toolplane::subscribe`].
    ///
    /// # Cancellation
    /// As [`Toolplane::subscribe`].
    ///
    /// # Errors
    /// The errors of [`Toolplane::subscribe`], for the view of this client.
    pub async fn subscribe_for(
        &self,
        uri: &str,
        caller: &Caller,
        client: &ClientIdentity,
    ) -> Result<(), ToolError> {
        let registry = self.registry();
        let look = |snapshot: &Snapshot| snapshot.resource(uri);
        let target = registry.find_in(Some(client), Feature::Resource, uri, look).await;
        let target = target.ok_or_else(|| self.not_found_by(Feature::Resource, uri, caller, client))?;
        self.admit_subscription(&target, caller)?;
        let source = registry
            .find_source_for(target.tool(), client)
            .ok_or_else(|| gone(uri))?;
        match source.subscribe_for(uri, client).await? {
            true => Ok(()),
            false => source.subscribe(uri).await,
        }
    }

    /// Ends the subscriptions of [`Toolplane::subscribe_for`] over connections of single clients that are older than
    /// `grace` and whose resource none of their clients watches, according to `is_watched`.
    pub fn end_unwatched(&self, grace: Duration, is_watched: &dyn Fn(&str, &ClientGroup) -> bool) {
        for source in self.0.registry.sources() {
            source.end_unwatched(grace, is_watched);
        }
    }

    fn admit_subscription(&self, target: &Target, caller: &Caller) -> Result<(), ToolError> {
        let rules = self.0.rules.load();
        let admitted = rules.admit_call(target, caller);
        admitted.map_err(ToolError::from)?;
        let Some(reason) = rules.approval_reason(target, caller) else {
            return Ok(());
        };
        let name = target.name();
        let message = format!(
            "`{name}` must not be subscribed to: each read of it must be approved, because {reason}; read it instead"
        );
        Err(ToolError::new(ErrorKind::Denied, message))
    }

    /// Ends [`Toolplane::subscribe`], for everyone.
    ///
    /// # Cancellation
    /// Dropping the future ends the wait. Updates may still arrive then.
    ///
    /// # Errors
    /// If the server does not confirm it. Updates may still arrive then.
    pub async fn unsubscribe(&self, uri: &str) -> Result<(), ToolError> {
        let target = self.0.registry.snapshot().resource(uri);
        match target.and_then(|target| self.source_of(&target)) {
            Some(source) => source.unsubscribe(uri).await,
            // No list contains it any more. A source without this subscription has nothing to do.
            None => {
                let sources = self.0.registry.sources();
                let ended = sources.iter().map(|source| source.unsubscribe(uri));
                join_all(ended).await.into_iter().collect()
            }
        }
    }

    /// Adds a callback for the updates of servers: see [`Update`]. It must not block. States of tasks contain no
    /// known secrets.
    pub fn on_update(&self, tell: &OnUpdate) {
        let (tell, redactor) = (Arc::clone(tell), self.0.redactor.clone());
        self.0.registry.on_update(
            &(Arc::new(move |update: &Update| match update {
                Update::Task { task, state } => {
                    let state = redactor.hide_in_json(state).unwrap_or_else(|| state.clone());
                    let task = task.clone();
                    tell(&Update::Task { task, state });
                }
                other => tell(other),
            }) as OnUpdate),
        );
    }

    /// Returns JSON for clients without known secrets, in any encoding; `None` if it contains none. For data that is
    /// not the result of a call, such as a page of a list or instructions; results were redacted already.
    #[must_use]
    pub fn hide_secrets(&self, json: &RawJson) -> Option<RawJson> {
        self.0.redactor.hide_in_json(json)
    }

    /// Returns a number that grows with every new secret, for caches of [`hide_secrets`](Self::hide_secrets).
    #[must_use]
    pub fn secrets_generation(&self) -> u64 {
        self.0.redactor.generation()
    }

    /// Notifies servers that a client's roots have changed.
    pub fn client_roots_changed(&self, client: &ClientKey) {
        self.0.live.load().servers.roots_changed(client);
    }

    /// Releases what servers keep for a client that has disconnected.
    pub fn client_gone(&self, client: &ClientKey) {
        self.0.live.load().servers.client_gone(client);
    }

    /// Returns `true` if a resource is the same for every caller, as far as this toolplane decides: reading it needs
    /// no permission, and its server has no connections for single sessions or principals.
    #[must_use]
    pub fn is_same_for_all(&self, uri: &str) -> bool {
        let Some(target) = self.0.registry.snapshot().resource(uri) else {
            return false;
        };
        self.0.rules.load().needs_no_permission(&target)
            && self
                .source_of(&target)
                .is_some_and(|source| self.0.live.load().servers.is_shared(source.name()))
    }

    /// Returns the known tool with this name, regardless of permissions: for facts that clients need before their
    /// call is read, not for display.
    #[must_use]
    pub fn known_tool(&self, name: &str) -> Option<Arc<Tool>> {
        self.0.registry.get(name)
    }

    /// Returns the known tool with this name as a client sees it, like [`known_tool`](Self::known_tool). Calls
    /// `client` only if a server has lists for single clients.
    #[must_use]
    pub fn known_tool_for(&self, name: &str, client: impl FnOnce() -> ClientIdentity) -> Option<Arc<Tool>> {
        self.0.registry.get_for(name, client)
    }

    /// Starts the servers that may have a tool with this name, if this client does not see it yet, so that
    /// [`known_tool_for`](Self::known_tool_for) finds it.
    ///
    /// # Cancellation
    /// Dropping the future ends the wait. Servers that are starting continue to start.
    pub async fn resolve_tool(&self, name: &str, client: &ClientIdentity) {
        let look = |snapshot: &Snapshot| snapshot.get(name).map(drop);
        self.registry()
            .find_in(Some(client), Feature::Tool, name, look)
            .await;
    }

    fn source_of(&self, target: &Target) -> Option<Arc<dyn Source>> {
        self.0.registry.find_source(target.tool())
    }
}

fn gone(uri: &str) -> ToolError {
    let message = format!("the server of `{uri}` is gone");
    ToolError::new(ErrorKind::Unavailable, message)
}
