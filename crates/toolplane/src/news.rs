//! News of resources, and what clients tell of themselves.

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
    /// Asks the server of a resource for news of it, on behalf of a caller that may read it. They go where
    /// [`Toolplane::on_update`] says, until [`Toolplane::unsubscribe`]; to ask again changes nothing.
    ///
    /// # Errors
    /// When there is no such resource, the caller may not read it, reads of it must be approved, or its server has no news to give.
    pub async fn subscribe(&self, uri: &str, caller: &Caller) -> Result<(), ToolError> {
        let target = self.0.registry.find_resource(uri).await;
        let target = target.ok_or_else(|| self.not_found(Feature::Resource, uri, caller))?;
        self.admit_subscription(&target, caller)?;
        let source = self.source_of(&target).ok_or_else(|| gone(uri))?;
        source.subscribe(uri).await
    }

    /// Asks the server of a resource for news of it, on behalf of a caller that may read it and of its client. They come
    /// from the connection that serves the client where it has one of its own, until [`Toolplane::end_unwatched`];
    /// otherwise this is [`Toolplane::subscribe`].
    ///
    /// # Errors
    /// As [`Toolplane::subscribe`], by what this client sees.
    pub async fn subscribe_for(
        &self,
        uri: &str,
        caller: &Caller,
        client: &ClientIdentity,
    ) -> Result<(), ToolError> {
        let registry = &self.0.registry;
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

    /// Ends the news of [`Toolplane::subscribe_for`] from connections of single clients, where they were asked for longer
    /// ago than `grace` and `is_watched` says that none of these clients watches the resource.
    pub fn end_unwatched(&self, grace: Duration, is_watched: &dyn Fn(&str, &ClientGroup) -> bool) {
        for source in self.0.registry.sources() {
            source.end_unwatched(grace, is_watched);
        }
    }

    fn admit_subscription(&self, target: &Target, caller: &Caller) -> Result<(), ToolError> {
        let rules = self.0.rules.load();
        let admitted = rules.admit_call(target, caller);
        admitted
            .map_err(|refusal| ToolError::new(ErrorKind::Denied, refusal.to_string()).with_source(refusal))?;
        let Some(reason) = rules.approval_reason(target) else {
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
    /// # Errors
    /// When the server does not take note of it. News may still come then.
    pub async fn unsubscribe(&self, uri: &str) -> Result<(), ToolError> {
        let target = self.0.registry.snapshot().resource(uri);
        match target.and_then(|target| self.source_of(&target)) {
            Some(source) => source.unsubscribe(uri).await,
            // It is on no list any more. A source that was not asked for its news has nothing to do.
            None => {
                let sources = self.0.registry.sources();
                let ended = sources.iter().map(|source| source.unsubscribe(uri));
                join_all(ended).await.into_iter().collect()
            }
        }
    }

    /// Hands what servers tell of their own accord to this from now on: see [`Update`]. It must not block. What a server says
    /// of how a task is comes without known secrets.
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

    /// JSON for clients without the secrets that are known so far, in any encoding; `None` if there are none in it. For what is
    /// no result of a call, such as a page of a list or instructions: results have gone through this.
    #[must_use]
    pub fn hide_secrets(&self, json: &RawJson) -> Option<RawJson> {
        self.0.redactor.hide_in_json(json)
    }

    /// Grows whenever another secret is known, for those who keep what [`hide_secrets`](Self::hide_secrets) gave.
    #[must_use]
    pub fn secrets_generation(&self) -> u64 {
        self.0.redactor.generation()
    }

    /// Takes note that a client's roots have changed: servers that know them are told.
    pub fn client_roots_changed(&self, client: &ClientKey) {
        self.0.running.load().servers.roots_changed(client);
    }

    /// Takes note that a client is gone: what servers kept for it is given up.
    pub fn client_gone(&self, client: &ClientKey) {
        self.0.running.load().servers.client_gone(client);
    }

    /// Whether a resource is the same for every caller, so far as that is up to this toolplane: nobody needs a permission
    /// to read it, and its server keeps no connection for a single session or principal.
    #[must_use]
    pub fn is_same_for_all(&self, uri: &str) -> bool {
        let Some(target) = self.0.registry.snapshot().resource(uri) else {
            return false;
        };
        self.0.rules.load().needs_no_permission(&target)
            && self
                .source_of(&target)
                .is_some_and(|source| self.0.running.load().servers.is_shared(source.name()))
    }

    /// The tool of this name, if it is known already, whoever may call it: for what clients must be told before their
    /// call is read, and not for showing.
    #[must_use]
    pub fn known_tool(&self, name: &str) -> Option<Arc<Tool>> {
        self.0.registry.get(name)
    }

    /// The tool of this name as a client sees it, as [`known_tool`](Self::known_tool). `client` is called only if any
    /// server has lists for single clients.
    #[must_use]
    pub fn known_tool_for(&self, name: &str, client: impl FnOnce() -> ClientIdentity) -> Option<Arc<Tool>> {
        self.0.registry.get_for(name, client)
    }

    /// Starts the servers that may have the tool of this name, if this client does not see it yet: for those who need
    /// [`known_tool_for`](Self::known_tool_for) to know it.
    pub async fn learn_tool(&self, name: &str, client: &ClientIdentity) {
        let look = |snapshot: &Snapshot| snapshot.get(name).map(drop);
        self.0
            .registry
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
