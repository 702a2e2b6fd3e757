use std::{
    collections::{BTreeMap, HashSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::Mutex as AsyncMutex;
use tool_core::{
    BoxFuture, Catalogue, Descriptor, ErrorKind, Feature, RejectedEntry, Source, SourceState, SourceStatus,
    ToolError,
};

use super::{
    ReadManifest, Store, StoreError, ToolAlias, VersionHead, VersionRequest,
    offer_reader::{OfferReader, ReadOffer},
};

/// Pause after a failed read of the store.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Source that offers the latest version of each tool in a [`Store`], and its aliases. Other versions are found on
/// request: see [`Source::version`].
///
/// A change of the store reads only what changed. If the store fails, the tools that were read stay.
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use tool_core::{Descriptor, ExecutorSpec, RawJson, Source};
/// use tool_registry::{MemoryStore, ReadManifest, StoreSource};
///
/// /// Reader for this example: every manifest is a tool of kind `mock`.
/// struct Mocks;
///
/// impl ReadManifest for Mocks {
///     fn read(&self, tool: &str, _: &RawJson) -> Result<Descriptor, String> {
///         Ok(Descriptor::new(tool, ExecutorSpec::new("mock")))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let source = StoreSource::new(Arc::new(MemoryStore::new()), Arc::new(Mocks));
/// source.load().await;
/// assert!(source.snapshot().tools.is_empty());
/// # }
/// ```
pub struct StoreSource {
    store: Arc<dyn Store>,
    reader: OfferReader,
    /// Held while the store is read.
    reading: AsyncMutex<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    catalogue: Arc<Catalogue>,
    /// Revision of the store that the catalogue shows.
    revision: u64,
    /// Tools by their names in the store, in the order of these.
    tools: Vec<(Arc<str>, Arc<Descriptor>)>,
    aliases: Vec<ToolAlias>,
    /// Tools of the store that cannot be offered, and the reasons.
    rejected: BTreeMap<Arc<str>, String>,
    /// Versions of tools that changed without their offer, drafts apart.
    published: BTreeMap<Arc<str>, Vec<VersionHead>>,
    failure: Option<String>,
}

impl StoreSource {
    /// Name of the source. No server has it: names of servers have no space.
    pub const NAME: &'static str = "tool store";

    /// Creates the source of a store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, manifests: Arc<dyn ReadManifest>) -> Self {
        Self {
            reader: OfferReader::new(manifests, store.name()),
            store,
            reading: AsyncMutex::default(),
            state: Mutex::default(),
        }
    }

    /// Reads what changed in the store.
    async fn refresh(&self) -> Result<(), StoreError> {
        let _reading = self.reading.lock().await;
        let (seen, is_first) = {
            let state = self.state.lock();
            (state.revision, state.catalogue.revision == 0)
        };
        let since = if is_first { 0 } else { seen };
        let mut parts = Vec::new();
        let mut start = |part| parts.push(self.reader.start(part));
        let changes = match self.store.changes_in_parts(since, &mut start).await {
            Ok(changes) => changes,
            Err(error) => {
                let mut state = self.state.lock();
                state.failure = Some(error.to_string());
                return Err(error);
            }
        };
        let mut read = Vec::new();
        for part in parts {
            read.extend(part.finish().await);
        }
        let aliases = changes.aliases.clone();
        let tools_changed = is_first || self.are_changed(&read).await?;
        // Aliases point to versions of tools, either of which may have changed.
        let aliases = match aliases {
            Some(aliases) => aliases,
            None => self.state.lock().aliases.clone(),
        };
        let is_unchanged = !is_first && !tools_changed && changes.aliases.is_none();
        let of_aliases = match is_unchanged {
            true => Vec::new(),
            false => self.read_aliases(&aliases).await,
        };
        let mut state = self.state.lock();
        state.failure = None;
        state.revision = changes.revision;
        if !is_unchanged {
            state.apply(read);
            state.aliases = aliases;
            state.publish(of_aliases);
        }
        Ok(())
    }

    /// Returns `true` unless only drafts of these tools have changed: they are offered to nobody.
    async fn are_changed(&self, read: &[ReadOffer]) -> Result<bool, StoreError> {
        let mut are_changed = false;
        for (name, now) in read {
            if self.state.lock().differs(name, now.as_ref()) {
                are_changed = true;
                continue;
            }
            // The offered version is the same. Others are called on request.
            let record = self.store.tool(name).await?;
            let mut published = record.map(|record| record.versions).unwrap_or_default();
            published.retain(|head| !VersionRequest::is_draft(head));
            let mut state = self.state.lock();
            let before = state.published.entry(name.clone()).or_default();
            are_changed |= *before != published;
            *before = published;
        }
        Ok(are_changed)
    }

    async fn read_aliases(&self, aliases: &[ToolAlias]) -> Vec<(ToolAlias, Result<Arc<Descriptor>, String>)> {
        let mut read = Vec::with_capacity(aliases.len());
        for alias in aliases {
            let target = self.read_alias(alias).await;
            read.push((alias.clone(), target));
        }
        read
    }

    async fn read_alias(&self, alias: &ToolAlias) -> Result<Arc<Descriptor>, String> {
        let request: VersionRequest = alias.version.parse().map_err(|error| format!("{error}"))?;
        let found = self
            .find(&alias.tool, &request)
            .await
            .map_err(|error| error.to_string())?;
        let missing = || format!("`{}` has no version `{}`", alias.tool, alias.version);
        let mut descriptor = found.ok_or_else(missing)?;
        descriptor.policy_names = vec![descriptor.name];
        descriptor.name = alias.name.clone();
        Ok(Arc::new(descriptor))
    }

    /// Finds a version in the store. Drafts are not found.
    async fn find(&self, tool: &str, request: &VersionRequest) -> Result<Option<Descriptor>, StoreError> {
        let Some(record) = self.store.tool(tool).await? else {
            return Ok(None);
        };
        let head = request
            .select(&record)
            .filter(|head| !VersionRequest::is_draft(head));
        let Some(head) = head else {
            return Ok(None);
        };
        let Some(stored) = self.store.version(tool, &head.version).await? else {
            return Ok(None);
        };
        let descriptor = self.reader.descriptor(tool, &stored);
        let unreadable = |reason| StoreError::corrupt(format!("`{tool}@{}`", head.version), reason);
        descriptor.map(Some).map_err(unreadable)
    }
}

impl State {
    /// Returns `true` if a tool is offered otherwise than before.
    fn differs(&self, name: &Arc<str>, now: Option<&Result<Arc<Descriptor>, String>>) -> bool {
        let known = self.tools.binary_search_by(|(known, _)| known.cmp(name));
        let offered = known.ok().map(|at| &self.tools[at].1);
        match (now, offered, self.rejected.get(name)) {
            (None, None, None) => false,
            (Some(Ok(now)), Some(before), None) => now != before,
            (Some(Err(now)), None, Some(before)) => now != before,
            _ => true,
        }
    }

    /// Takes the changed tools.
    fn apply(&mut self, read: Vec<ReadOffer>) {
        if read.is_empty() {
            return;
        }
        let changed: HashSet<&str> = read.iter().map(|(name, _)| &**name).collect();
        self.tools.retain(|(name, _)| !changed.contains(&**name));
        drop(changed);
        self.tools.reserve_exact(read.len());
        for (name, read) in read {
            self.rejected.remove(&name);
            match read {
                Some(Ok(descriptor)) => self.tools.push((name, descriptor)),
                Some(Err(reason)) => drop(self.rejected.insert(name, reason)),
                None => {}
            }
        }
        // Fast for sorted runs, which these are.
        self.tools.sort_by(|(a, _), (b, _)| a.cmp(b));
    }

    /// Makes a new catalogue.
    fn publish(&mut self, aliases: Vec<(ToolAlias, Result<Arc<Descriptor>, String>)>) {
        let mut tools = Vec::with_capacity(self.tools.len() + aliases.len());
        tools.extend(self.tools.iter().map(|(_, descriptor)| descriptor.clone()));
        let reject = |name: &Arc<str>, reason: String| RejectedEntry::new(Feature::Tool, &**name, reason);
        let mut rejected: Vec<_> = self
            .rejected
            .iter()
            .map(|(name, reason)| reject(name, reason.clone()))
            .collect();
        for (alias, target) in aliases {
            match target {
                Ok(descriptor) => tools.push(descriptor),
                Err(reason) => rejected.push(reject(&alias.name, format!("it is an alias, and {reason}"))),
            }
        }
        let mut catalogue = Catalogue::new(self.catalogue.revision + 1, tools);
        catalogue.rejected = rejected;
        self.catalogue = Arc::new(catalogue);
    }
}

impl Source for StoreSource {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn snapshot(&self) -> Arc<Catalogue> {
        self.state.lock().catalogue.clone()
    }

    fn load(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let is_loaded = {
                let state = self.state.lock();
                state.catalogue.revision > 0 && state.failure.is_none()
            };
            if !is_loaded && let Err(error) = self.refresh().await {
                tracing::warn!(error = %error, "the store of tools cannot be read");
            }
        })
    }

    fn recall(&self) -> BoxFuture<'_, ()> {
        // Nothing is started: the store is read.
        self.load()
    }

    fn changed(&self, seen: u64) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            loop {
                let (revision, known, is_loaded) = {
                    let state = self.state.lock();
                    (
                        state.catalogue.revision,
                        state.revision,
                        state.catalogue.revision > 0,
                    )
                };
                if revision != seen {
                    return;
                }
                if is_loaded {
                    self.store.changed(known).await;
                }
                if let Err(error) = self.refresh().await {
                    tracing::debug!(error = %error, "the store of tools cannot be read");
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
            }
        })
    }

    fn may_hold(&self, feature: Feature, _: &str) -> bool {
        feature == Feature::Tool && self.state.lock().catalogue.revision == 0
    }

    fn status(&self) -> SourceStatus {
        let state = self.state.lock();
        let is_loaded = state.catalogue.revision > 0;
        let mut status = SourceStatus::new(match &state.failure {
            Some(reason) if !is_loaded => SourceState::Failed(reason.clone()),
            None if !is_loaded => SourceState::NotStarted,
            _ => SourceState::Ready,
        });
        status.n_tools = state.catalogue.tools.len();
        status.has_lists = is_loaded;
        status.last_error.clone_from(&state.failure);
        status.detail = Some(self.store.name().to_owned());
        status
    }

    fn version<'a>(
        &'a self,
        tool: &'a str,
        version: &'a str,
    ) -> BoxFuture<'a, Result<Option<Arc<Descriptor>>, ToolError>> {
        Box::pin(async move {
            let request: VersionRequest =
                version.parse().map_err(|error: super::InvalidVersionRequest| {
                    ToolError::new(ErrorKind::InvalidArguments, error.to_string())
                })?;
            let found = self.find(tool, &request).await;
            let found = found.map_err(|error| {
                let message = format!("`{tool}@{version}` cannot be read from the store");
                ToolError::new(ErrorKind::Unavailable, message).with_source(error)
            })?;
            Ok(found.map(Arc::new))
        })
    }
}

impl fmt::Debug for StoreSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreSource")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}
