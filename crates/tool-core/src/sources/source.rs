use std::{future::ready, sync::Arc, time::Duration};

use raw_json::RawJson;

use crate::{
    AccessDecision, BoxFuture, ClientGroup, ClientIdentity, ClientKey, Descriptor, ErrorKind, Feature,
    ListWarning, SourceChange, SourceState, Task, ToolError,
};

/// Update that a source sends on its own, as the source wrote it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Update {
    /// A watched resource has changed: an object with its `uri`.
    Resource(RawJson),
    /// A resource watched by [`Source::subscribe_for`] has changed for some clients.
    ClientResource {
        /// Clients of the connection that sent the update.
        clients: ClientGroup,
        /// An object with its `uri`.
        params: RawJson,
    },
    /// A followed task has changed.
    Task {
        /// Task, equal to that of the caller's [`Outcome::Task`](crate::Outcome::Task).
        task: Task,
        /// State, including the id that is not for callers.
        state: RawJson,
    },
    /// The source changed its state. Sent in the order of the changes, shortly after [`Source::status`] shows them.
    State(SourceChange),
    /// The lists for some clients were created, removed or changed: [`Source::snapshot_for`] returns the new ones.
    ClientLists {
        /// Name of the source.
        source: Arc<str>,
        /// Clients of the lists.
        clients: ClientGroup,
        /// Kinds of lists whose content changed for these clients; may be empty.
        changed: Vec<Feature>,
    },
    /// The sandbox of the source's program decided about an access.
    Access(AccessDecision),
    /// A user has finished the page of a URL elicitation.
    PageVisited {
        /// Client whose call needed it.
        client: ClientKey,
        /// An object with the `elicitationId` that the client knows.
        params: RawJson,
    },
}

/// Callback for updates of a source. Must not block.
pub type OnUpdate = Arc<dyn Fn(&Update) + Send + Sync>;

/// Source of tools: files, a store, an MCP server.
pub trait Source: Send + Sync {
    /// Returns the name, unique among sources: the name of a server, or of the configuration.
    fn name(&self) -> &str;

    /// Returns the known offers. Cheap: no I/O.
    fn snapshot(&self) -> Arc<Catalogue>;

    /// Returns the offers to this client over a connection of its own; `None` if the client shares
    /// [`Source::snapshot`]. Cheap: no I/O. [`Update::ClientLists`] reports every change.
    fn snapshot_for(&self, client: &ClientIdentity) -> Option<Arc<Catalogue>> {
        let _ = client;
        None
    }

    /// Waits until [`Source::snapshot_for`] contains the lists that the client's own connection reported as changed.
    /// Opens no connection, and gives up after a short time.
    fn refresh_for<'a>(&'a self, client: &'a ClientIdentity) -> BoxFuture<'a, ()> {
        let _ = client;
        Box::pin(ready(()))
    }

    /// Loads the snapshot if that was not done yet: connects to the server and lists its tools. Concurrent callers
    /// share one run. [`Source::status`] shows a failure.
    fn load(&self) -> BoxFuture<'_, ()>;

    /// Fills an empty snapshot with the cached lists of an earlier run: see [`Catalogue::is_kept`]. Starts nothing.
    fn recall(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }

    /// Does the work of [`Source::load`] at low priority: sources that a caller waits for go first.
    fn load_in_background(&self) -> BoxFuture<'_, ()> {
        self.load()
    }

    /// Returns `true` if the source is started on first use, provided that its lists are cached.
    fn is_lazy(&self) -> bool {
        false
    }

    /// Completes when the revision of the snapshot differs from `seen`.
    fn changed(&self, seen: u64) -> BoxFuture<'_, ()>;

    /// Returns `true` if a tool or prompt with this name, or a resource with this URI, may be among those not known
    /// yet.
    fn may_hold(&self, feature: Feature, name: &str) -> bool;

    /// Returns the status.
    fn status(&self) -> SourceStatus;

    /// Returns a version of a tool that [`Source::snapshot`] lists in another version, or not at all. `version` is a
    /// request as it follows `@` in `tool@version`: a version, a range or a digest. `None` if the source has no such
    /// version, or only one version of each tool.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`] if `version` is no request; [`ErrorKind::Unavailable`] if the source does not
    /// work.
    fn version<'a>(
        &'a self,
        tool: &'a str,
        version: &'a str,
    ) -> BoxFuture<'a, Result<Option<Arc<Descriptor>>, ToolError>> {
        let _ = (tool, version);
        Box::pin(ready(Ok(None)))
    }

    /// Returns warnings about the current lists, for operators.
    fn warnings(&self) -> Vec<ListWarning> {
        self.snapshot().warnings.clone()
    }

    /// Returns the prefix of the names of its tools and prompts: its namespace. A name with the prefixes of several
    /// sources belongs to the one with the longest. `None` if it has none.
    fn prefix(&self) -> Option<String> {
        None
    }

    /// Returns `true` if an operator gave this name to one of its tools.
    fn is_renamed(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// Returns the source's instructions for models, as far as they are known. Cheap: no I/O.
    fn instructions(&self) -> Option<String> {
        None
    }

    /// Checks whether the source is reachable. Returns `None` if there is nothing to check, or nothing has used the
    /// source yet. Starts a failed source again.
    fn check(&self) -> BoxFuture<'_, Option<Result<(), ToolError>>> {
        Box::pin(ready(None))
    }

    /// Returns the interval of [`Source::check`]; `None` if it is never checked.
    fn check_interval(&self) -> Option<Duration> {
        None
    }

    /// Subscribes to updates of a resource, by its URI, until [`Source::unsubscribe`]. [`Source::on_update`] receives
    /// them.
    ///
    /// # Errors
    /// If the source sends no updates of this resource.
    fn subscribe<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<(), ToolError>> {
        let error = ToolError::new(
            ErrorKind::UpstreamError,
            format!("there is no news of `{uri}` to be had"),
        );
        Box::pin(ready(Err(error)))
    }

    /// Subscribes to updates of a resource, by its URI, over the connection of this client. They arrive as
    /// [`Update::ClientResource`] until [`Source::end_unwatched`]. Returns `false` if the client shares the updates
    /// of [`Source::subscribe`].
    ///
    /// # Errors
    /// If the source sends no updates of this resource.
    fn subscribe_for<'a>(
        &'a self,
        uri: &'a str,
        client: &'a ClientIdentity,
    ) -> BoxFuture<'a, Result<bool, ToolError>> {
        let _ = (uri, client);
        Box::pin(ready(Ok(false)))
    }

    /// Ends the subscriptions of [`Source::subscribe_for`] that are older than `grace` and whose resource none of
    /// their clients watches, according to `is_watched`.
    fn end_unwatched(&self, grace: Duration, is_watched: &dyn Fn(&str, &ClientGroup) -> bool) {
        let _ = (grace, is_watched);
    }

    /// Ends [`Source::subscribe`].
    ///
    /// # Errors
    /// If the source does not confirm it. Updates may still arrive then.
    fn unsubscribe<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<(), ToolError>> {
        let _ = uri;
        Box::pin(ready(Ok(())))
    }

    /// Adds a callback for the updates of the source.
    fn on_update(&self, tell: OnUpdate) {
        drop(tell);
    }
}

/// Offers of a source at one point in time.
#[derive(Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Catalogue {
    /// Revision, which grows with every change; 0 before the first load.
    pub revision: u64,
    /// Tools, in the source's own order.
    pub tools: Vec<Arc<Descriptor>>,
    /// Prompts, resources and resource templates, each kind in the source's own order.
    pub others: Vec<Arc<Descriptor>>,
    /// Omitted entries and the reasons.
    pub rejected: Vec<RejectedEntry>,
    /// `true` if everything comes from the cache of an earlier run and [`Source::load`] has not confirmed it in this
    /// one.
    pub is_kept: bool,
    /// Warnings about the lists and their entries.
    pub warnings: Vec<ListWarning>,
}

impl Catalogue {
    /// Creates the lists of a source that offers these tools, and no prompts or resources. The revision grows with every
    /// change.
    #[must_use]
    pub fn new(revision: u64, tools: Vec<Arc<Descriptor>>) -> Self {
        Self {
            revision,
            tools,
            ..Self::default()
        }
    }

    /// Sets prompts, resources and templates.
    #[must_use]
    pub fn with_others(mut self, others: Vec<Arc<Descriptor>>) -> Self {
        self.others = others;
        self
    }
}

/// Omitted tool, prompt or resource.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RejectedEntry {
    /// Kind of the entry.
    pub feature: Feature,
    /// Name, as far as it has one.
    pub name: String,
    /// Reason why it is not offered.
    pub reason: String,
}

impl RejectedEntry {
    /// Creates an entry that cannot be offered, for this reason.
    #[must_use]
    pub fn new(feature: Feature, name: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            feature,
            name: name.into(),
            reason: reason.into(),
        }
    }
}

/// Status of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceStatus {
    /// State.
    pub state: SourceState,
    /// Time in this state, if known.
    pub in_state: Option<Duration>,
    /// Number of attempts of its start so far: consecutive failures, and the one that succeeded.
    pub n_attempts: u32,
    /// Reason of the last failure, even if the source has recovered.
    pub last_error: Option<String>,
    /// Time until the next attempt; `None` if the next use attempts a start.
    pub retry_in: Option<Duration>,
    /// Number of offered tools.
    pub n_tools: usize,
    /// `true` if any lists are known.
    pub has_lists: bool,
    /// `true` if its lists come from the cache of an earlier run and are not confirmed yet.
    pub has_kept_lists: bool,
    /// `true` if it is started on first use, provided that its lists are cached.
    pub is_lazy: bool,
    /// `true` if a health check is part of its start.
    pub is_checked_at_start: bool,
    /// Details, such as the protocol revision or the last output of a failed server.
    pub detail: Option<String>,
    /// Number of restarts.
    pub n_restarts: u64,
    /// Duration of the last start.
    pub start_took: Option<Duration>,
    /// Level of the sandbox in which its program was started last: `bwrap`, `landlock`, or `none` where the operator wants none.
    /// `None` for a source without a setting for it, and before the first start.
    pub sandbox: Option<String>,
}

impl SourceStatus {
    /// Creates the status of a source of which only the state is known.
    #[must_use]
    pub fn new(state: SourceState) -> Self {
        Self {
            state,
            in_state: None,
            n_attempts: 0,
            last_error: None,
            retry_in: None,
            n_tools: 0,
            has_lists: false,
            has_kept_lists: false,
            is_lazy: false,
            is_checked_at_start: false,
            detail: None,
            n_restarts: 0,
            start_took: None,
            sandbox: None,
        }
    }
}
