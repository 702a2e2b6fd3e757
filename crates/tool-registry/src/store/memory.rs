use std::{collections::BTreeMap, fmt, future::ready};

use parking_lot::Mutex;
use semver::Version;
use tokio::sync::watch;
use tool_core::BoxFuture;

use super::{
    AuthoredVersion, OfferedTool, ServerRecord, Store, StoreChanges, StoreError, StoreOperation,
    StoredVersion, ToolAlias, ToolChange, ToolRecord, VersionState,
};

/// A [`Store`] in memory. It ends with the process.
///
/// # Examples
/// ```
/// use tool_registry::{MemoryStore, Store};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), tool_registry::StoreError> {
/// let store = MemoryStore::new();
/// assert!(store.tools().await?.is_empty());
/// # Ok(())
/// # }
/// ```
pub struct MemoryStore {
    state: Mutex<State>,
    revision: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    tools: BTreeMap<String, ToolRecord>,
    contents: BTreeMap<String, BTreeMap<Version, StoredVersion>>,
    aliases: BTreeMap<String, ToolAlias>,
    servers: BTreeMap<String, ServerRecord>,
    revision: u64,
    aliases_revision: u64,
    servers_revision: u64,
}

impl MemoryStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: Mutex::default(),
            revision: watch::Sender::new(0),
        }
    }

    /// Makes a change and tells the waiters. After an error, only the number of the revision has changed.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut state = self.state.lock();
        state.revision += 1;
        let result = change(&mut state)?;
        self.revision.send_replace(state.revision);
        Ok(result)
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl State {
    /// Applies changes. After an error, every tool is as it was.
    fn apply_all(&mut self, changes: Vec<ToolChange>) -> Result<u64, StoreError> {
        let names: Vec<_> = changes.iter().map(|change| change.tool.clone()).collect();
        let before: Vec<_> = names
            .iter()
            .map(|name| {
                (
                    self.tools.get(&**name).cloned(),
                    self.contents.get(&**name).cloned(),
                )
            })
            .collect();
        let applied = changes.into_iter().try_for_each(|change| self.apply(change));
        if applied.is_err() {
            for (name, (record, contents)) in names.iter().zip(before).rev() {
                restore(&mut self.tools, name, record);
                restore(&mut self.contents, name, contents);
            }
        }
        applied.map(|()| self.revision)
    }

    fn apply(&mut self, change: ToolChange) -> Result<(), StoreError> {
        let tool = &*change.tool;
        let known = self.tools.get(tool).map_or(0, |record| record.revision);
        if known != change.expected {
            return Err(StoreError::Conflict {
                tool: tool.to_owned(),
            });
        }
        for operation in change.operations {
            self.apply_one(tool, operation)?;
        }
        if let Some(record) = self.tools.get_mut(tool) {
            record.revision = self.revision;
        }
        Ok(())
    }

    fn apply_one(&mut self, tool: &str, operation: StoreOperation) -> Result<(), StoreError> {
        let corrupt = |reason: &str| StoreError::corrupt(format!("a change of `{tool}`"), reason);
        if let StoreOperation::Create { owner } = operation {
            let record = ToolRecord::new(tool.into(), owner, self.revision);
            self.tools.insert(tool.to_owned(), record);
            return Ok(());
        }
        let Some(record) = self.tools.get_mut(tool) else {
            return Err(corrupt("there is no such tool"));
        };
        match operation {
            StoreOperation::Create { .. } => {}
            StoreOperation::Put(stored) => {
                let version = stored.head.version.clone();
                let known = record.versions.iter().position(|head| head.version == version);
                match known {
                    Some(at) if record.versions[at].state == VersionState::Draft => {
                        record.versions[at] = stored.head.clone();
                    }
                    Some(_) => return Err(corrupt("a published version does not change")),
                    None => {
                        record.versions.push(stored.head.clone());
                        record.versions.sort_by(|a, b| a.version.cmp(&b.version));
                    }
                }
                self.contents
                    .entry(tool.to_owned())
                    .or_default()
                    .insert(version, *stored);
            }
            StoreOperation::SetState { version, state } => {
                let head = record.versions.iter_mut().find(|head| head.version == version);
                let head = head.ok_or_else(|| corrupt("there is no such version"))?;
                head.state = state.clone();
                let contents = self.contents.get_mut(tool);
                if let Some(content) = contents.and_then(|contents| contents.get_mut(&version)) {
                    content.head.state = state;
                }
            }
            StoreOperation::SetAgent { version, agent } => {
                let head = record.versions.iter_mut().find(|head| head.version == version);
                let head = head.ok_or_else(|| corrupt("there is no such version"))?;
                head.agent = Some(agent);
                let contents = self.contents.get_mut(tool);
                if let Some(content) = contents.and_then(|contents| contents.get_mut(&version)) {
                    content.head.agent.clone_from(&head.agent);
                }
            }
            StoreOperation::SetLatest(change) => {
                record.latest.clone_from(&change.version);
                record.history.push(change);
            }
            StoreOperation::PopLatest => {
                record.history.pop();
                record.latest = record.history.last().and_then(|change| change.version.clone());
            }
            StoreOperation::RemoveDraft { version } => {
                record.versions.retain(|head| head.version != version);
                if let Some(contents) = self.contents.get_mut(tool) {
                    contents.remove(&version);
                }
            }
        }
        Ok(())
    }

    fn offered(&self, record: &ToolRecord) -> OfferedTool {
        let latest = record
            .latest
            .as_ref()
            .and_then(|latest| self.contents.get(&*record.name)?.get(latest).cloned());
        OfferedTool::new(record.name.clone(), latest)
    }

    fn changes(&self, since: u64) -> StoreChanges {
        let mut changes = StoreChanges::new(self.revision);
        let changed = self.tools.values().filter(|record| record.revision > since);
        changes.tools = changed.map(|record| self.offered(record)).collect();
        if self.aliases_revision > since || since == 0 {
            changes.aliases = Some(self.aliases.values().cloned().collect());
        }
        changes.servers_changed = self.servers_revision > since;
        changes
    }
}

fn restore<T>(all: &mut BTreeMap<String, T>, name: &str, before: Option<T>) {
    match before {
        Some(before) => all.insert(name.to_owned(), before),
        None => all.remove(name),
    };
}

impl Store for MemoryStore {
    fn name(&self) -> &str {
        "memory"
    }

    fn tool<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<ToolRecord>, StoreError>> {
        Box::pin(ready(Ok(self.state.lock().tools.get(name).cloned())))
    }

    fn tools(&self) -> BoxFuture<'_, Result<Vec<ToolRecord>, StoreError>> {
        Box::pin(ready(Ok(self.state.lock().tools.values().cloned().collect())))
    }

    fn version<'a>(
        &'a self,
        tool: &'a str,
        version: &'a Version,
    ) -> BoxFuture<'a, Result<Option<StoredVersion>, StoreError>> {
        let state = self.state.lock();
        let found = state
            .contents
            .get(tool)
            .and_then(|contents| contents.get(version));
        Box::pin(ready(Ok(found.cloned())))
    }

    fn versions_by<'a>(&'a self, author: &'a str) -> BoxFuture<'a, Result<Vec<AuthoredVersion>, StoreError>> {
        let state = self.state.lock();
        let versions = state.contents.iter().flat_map(|(tool, versions)| {
            let own = versions
                .values()
                .filter(|stored| stored.head.agent.is_some() && *stored.head.created_by == *author);
            own.map(|stored| AuthoredVersion::new(tool.as_str(), stored.head.clone(), stored.n_bytes()))
        });
        Box::pin(ready(Ok(versions.collect())))
    }

    fn apply_all(&self, changes: Vec<ToolChange>) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(async move { self.change(|state| state.apply_all(changes)) })
    }

    fn revision(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        Box::pin(ready(Ok(self.state.lock().revision)))
    }

    fn changes(&self, since: u64) -> BoxFuture<'_, Result<StoreChanges, StoreError>> {
        Box::pin(ready(Ok(self.state.lock().changes(since))))
    }

    fn changed(&self, seen: u64) -> BoxFuture<'_, ()> {
        let mut revision = self.revision.subscribe();
        Box::pin(async move {
            // The sender lives as long as the store, which the future borrows.
            let _ = revision.wait_for(|revision| *revision != seen).await;
        })
    }

    fn aliases(&self) -> BoxFuture<'_, Result<Vec<ToolAlias>, StoreError>> {
        Box::pin(ready(Ok(self.state.lock().aliases.values().cloned().collect())))
    }

    fn set_alias<'a>(
        &'a self,
        name: &'a str,
        target: Option<ToolAlias>,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            self.change(|state| {
                state.aliases_revision = state.revision;
                Ok(match target {
                    Some(target) => {
                        state.aliases.insert(name.to_owned(), target);
                        true
                    }
                    None => state.aliases.remove(name).is_some(),
                })
            })
        })
    }

    fn servers(&self) -> BoxFuture<'_, Result<Vec<ServerRecord>, StoreError>> {
        Box::pin(ready(Ok(self.state.lock().servers.values().cloned().collect())))
    }

    fn set_server<'a>(
        &'a self,
        name: &'a str,
        server: Option<ServerRecord>,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            self.change(|state| {
                state.servers_revision = state.revision;
                Ok(match server {
                    Some(mut server) => {
                        if let Some(known) = state.servers.get(name) {
                            server.created_at = known.created_at;
                        }
                        state.servers.insert(name.to_owned(), server);
                        true
                    }
                    None => state.servers.remove(name).is_some(),
                })
            })
        })
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("revision", &*self.revision.borrow())
            .finish_non_exhaustive()
    }
}
