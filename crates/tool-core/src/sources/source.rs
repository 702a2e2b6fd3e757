use std::{future::ready, sync::Arc, time::Duration};

use raw_json::RawJson;

use crate::{
    BoxFuture, ClientGroup, ClientIdentity, ClientKey, Descriptor, ErrorKind, Feature, ListWarning,
    SourceChange, SourceState, Task, ToolError,
};

/// What a source tells of its own accord, as it wrote it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Update {
    /// A resource of which news is wanted has changed: an object with its `uri`.
    Resource(RawJson),
    /// A resource of which news is wanted by [`Source::subscribe_for`] has changed, as some clients alone see it.
    ClientResource {
        /// The clients that are served by the connection which brought the news.
        clients: ClientGroup,
        /// An object with its `uri`.
        params: RawJson,
    },
    /// A task has changed that a caller follows.
    Task {
        /// The task, as the caller's [`Outcome::Task`](crate::Outcome::Task) has it.
        task: Task,
        /// How it is, with the id that is not for callers.
        state: RawJson,
    },
    /// It is in another state than before. Told in the order in which states change, a moment later than
    /// [`Source::status`] shows them.
    State(SourceChange),
    /// The lists that the source keeps for some clients alone began, ended or changed: [`Source::snapshot_for`] returns
    /// the new ones.
    ClientLists {
        /// The name of the source.
        source: Arc<str>,
        /// The clients whose lists these are.
        clients: ClientGroup,
        /// The lists that hold something else for these clients than before; may be empty.
        changed: Vec<Feature>,
    },
    /// What a user was sent to a page for is done.
    PageVisited {
        /// The client whose call needed it.
        client: ClientKey,
        /// An object with the `elicitationId` that the client knows.
        params: RawJson,
    },
}

/// Takes what a source tells of its own accord. It must not block.
pub type OnUpdate = Arc<dyn Fn(&Update) + Send + Sync>;

/// Where tools come from: files, a store, an MCP server.
pub trait Source: Send + Sync {
    /// Its name, unique among sources: a server's name, or that of the configuration.
    fn name(&self) -> &str;

    /// What it offers as far as it is known now. Cheap: no I/O.
    fn snapshot(&self) -> Arc<Catalogue>;

    /// Returns what it offers to this client over a connection of its own; `None` if the client shares
    /// [`Source::snapshot`]. Cheap: no I/O. [`Update::ClientLists`] tells of every change.
    fn snapshot_for(&self, client: &ClientIdentity) -> Option<Arc<Catalogue>> {
        let _ = client;
        None
    }

    /// Waits until [`Source::snapshot_for`] has read the lists of which the client's own connection has said that they
    /// changed. Opens no connection, and gives up after a short time.
    fn refresh_for<'a>(&'a self, client: &'a ClientIdentity) -> BoxFuture<'a, ()> {
        let _ = client;
        Box::pin(ready(()))
    }

    /// Brings the snapshot up to date if that was not done yet: connects to the server and lists its tools. Many
    /// callers share one run. Failure shows in [`Source::status`].
    fn load(&self) -> BoxFuture<'_, ()>;

    /// Fills the snapshot with the lists that were kept from an earlier run, see [`Catalogue::is_kept`], unless anything is
    /// in it already. Starts nothing.
    fn recall(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }

    /// The same as [`Source::load`] for nobody who waits: other sources that are needed now go first.
    fn load_in_background(&self) -> BoxFuture<'_, ()> {
        self.load()
    }

    /// Whether it is left alone until somebody needs it, where its lists are known.
    fn is_lazy(&self) -> bool {
        false
    }

    /// Resolves when the snapshot's revision is another than `seen`.
    fn changed(&self, seen: u64) -> BoxFuture<'_, ()>;

    /// Whether a tool or prompt of this name, or a resource of this URI, may be among those not known yet.
    fn may_hold(&self, feature: Feature, name: &str) -> bool;

    /// How it is.
    fn status(&self) -> SourceStatus;

    /// Warnings about what it lists now, for its operators.
    fn warnings(&self) -> Vec<ListWarning> {
        self.snapshot().warnings.clone()
    }

    /// Prefix of the names of its tools and prompts: its namespace. A name that begins with the prefixes of several
    /// sources belongs to the one with the longest. `None` if it has none.
    fn prefix(&self) -> Option<String> {
        None
    }

    /// Returns `true` if an operator gave this name to one of its tools.
    fn is_renamed(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// Advice for models on how to use what it offers, in its own words and as far as it is known now. Cheap: no I/O.
    fn instructions(&self) -> Option<String> {
        None
    }

    /// Asks what stands behind it whether it is there; nothing if there is nothing to ask, or nobody has needed it yet. One
    /// that has failed is started again for it.
    fn check(&self) -> BoxFuture<'_, Option<Result<(), ToolError>>> {
        Box::pin(ready(None))
    }

    /// How often it is to be asked by [`Source::check`]; never if absent.
    fn check_interval(&self) -> Option<Duration> {
        None
    }

    /// Asks for news of a resource, by its URI, until [`Source::unsubscribe`]. They go where [`Source::on_update`]
    /// says.
    ///
    /// # Errors
    /// When there is no news of this resource to be had.
    fn subscribe<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<(), ToolError>> {
        let error = ToolError::new(
            ErrorKind::UpstreamError,
            format!("there is no news of `{uri}` to be had"),
        );
        Box::pin(ready(Err(error)))
    }

    /// Asks for news of a resource for this client, by its URI, from the connection that serves the client alone. They come
    /// as [`Update::ClientResource`] until [`Source::end_unwatched`]. Returns `false` if the client shares the news of
    /// [`Source::subscribe`] now.
    ///
    /// # Errors
    /// When there is no news of this resource to be had.
    fn subscribe_for<'a>(
        &'a self,
        uri: &'a str,
        client: &'a ClientIdentity,
    ) -> BoxFuture<'a, Result<bool, ToolError>> {
        let _ = (uri, client);
        Box::pin(ready(Ok(false)))
    }

    /// Ends the subscriptions of [`Source::subscribe_for`] that were asked for longer ago than `grace`, and of which
    /// `is_watched` says that none of these clients watches the resource.
    fn end_unwatched(&self, grace: Duration, is_watched: &dyn Fn(&str, &ClientGroup) -> bool) {
        let _ = (grace, is_watched);
    }

    /// Ends [`Source::subscribe`].
    ///
    /// # Errors
    /// When the source does not take note of it. News may still come then.
    fn unsubscribe<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<(), ToolError>> {
        let _ = uri;
        Box::pin(ready(Ok(())))
    }

    /// Hands what the source tells of its own accord to this as well, from now on.
    fn on_update(&self, tell: OnUpdate) {
        drop(tell);
    }
}

/// What a source offers at one time.
#[derive(Debug, Default, PartialEq)]
pub struct Catalogue {
    /// Grows with every change; 0 while nothing was read yet.
    pub revision: u64,
    /// The tools, in the source's own order.
    pub tools: Vec<Arc<Descriptor>>,
    /// The prompts, resources and resource templates, those of each kind in the source's own order.
    pub others: Vec<Arc<Descriptor>>,
    /// What was left out, and why.
    pub rejected: Vec<RejectedEntry>,
    /// Whether all of it was kept from an earlier run and [`Source::load`] has not confirmed it in this one.
    pub is_kept: bool,
    /// Warnings about the lists and their entries that were found when they were read.
    pub warnings: Vec<ListWarning>,
}

/// A tool, prompt or resource that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedEntry {
    /// What it is.
    pub feature: Feature,
    /// Its name, as far as it has one.
    pub name: String,
    /// Why it is not offered.
    pub reason: String,
}

/// How a source is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceStatus {
    /// Where it stands.
    pub state: SourceState,
    /// How long it has been there, if that is known.
    pub in_state: Option<Duration>,
    /// How many tries its start took so far: those that failed in a row, and the one that made it ready.
    pub n_attempts: u32,
    /// Why it failed last, also if it is well since.
    pub last_error: Option<String>,
    /// How long it is left alone before it is tried again; nothing if whoever needs it next has it tried.
    pub retry_in: Option<Duration>,
    /// How many tools it offers.
    pub n_tools: usize,
    /// Whether any lists of it are known.
    pub has_lists: bool,
    /// Whether its lists were kept from an earlier run and are not confirmed yet.
    pub has_kept_lists: bool,
    /// Whether it is left alone until somebody needs it, where its lists are known.
    pub is_lazy: bool,
    /// Whether a health check is a part of its start.
    pub is_checked_at_start: bool,
    /// What there is to know of it, such as the protocol's revision or the end of a failed server's output.
    pub detail: Option<String>,
    /// How often it had to be started again.
    pub n_restarts: u64,
    /// How long the last start took.
    pub start_took: Option<Duration>,
}

impl SourceStatus {
    /// That of a source of which no more is known than where it stands.
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
        }
    }
}
