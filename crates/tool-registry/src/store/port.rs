use std::{fmt, sync::Arc};

use raw_json::RawJson;
use semver::Version;
use tool_core::{BoxFuture, Descriptor};

use super::{
    AgentVersion, AuthoredVersion, LatestChange, ServerRecord, StoreError, StoredVersion, ToolAlias,
    ToolRecord, VersionState,
};

/// Port to a store of tools and servers: the repository behind the registry.
///
/// A store keeps records and applies changes; [`Publisher`](crate::Publisher) decides which ones. It guarantees:
///
/// - a change of a tool is visible wholly or not at all, also after a crash;
/// - a change that is based on an outdated revision of the tool fails with [`StoreError::Conflict`] and changes nothing;
/// - every change raises the revision of the store, and [`Store::changes`] reports it to all users of the same store.
///
/// # Cancellation
/// The futures may be dropped at any time. A change is then made wholly or not at all.
pub trait Store: fmt::Debug + Send + Sync {
    /// Returns the name for messages, such as `sqlite`.
    fn name(&self) -> &str;

    /// Returns a tool with the heads of all its versions.
    ///
    /// # Errors
    /// If the store does not work.
    fn tool<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<ToolRecord>, StoreError>>;

    /// Returns all tools, in the order of their names.
    ///
    /// # Errors
    /// If the store does not work.
    fn tools(&self) -> BoxFuture<'_, Result<Vec<ToolRecord>, StoreError>>;

    /// Returns a version with its content.
    ///
    /// # Errors
    /// If the store does not work.
    fn version<'a>(
        &'a self,
        tool: &'a str,
        version: &'a Version,
    ) -> BoxFuture<'a, Result<Option<StoredVersion>, StoreError>>;

    /// Returns the versions that this agent made, in the order of their tools' names.
    ///
    /// # Errors
    /// If the store does not work.
    fn versions_by<'a>(&'a self, author: &'a str) -> BoxFuture<'a, Result<Vec<AuthoredVersion>, StoreError>>;

    /// Applies changes of several tools, all or none, and returns the new revision.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if one of the tools has another revision by now than its change is based on. Otherwise if the
    /// store does not work.
    fn apply_all(&self, changes: Vec<ToolChange>) -> BoxFuture<'_, Result<u64, StoreError>>;

    /// Applies operations to one tool: see [`Store::apply_all`]. `expected` is the revision of the record that they are based
    /// on; 0 for a tool that does not exist.
    ///
    /// # Errors
    /// As for [`Store::apply_all`].
    fn apply<'a>(
        &'a self,
        tool: &'a str,
        expected: u64,
        operations: Vec<StoreOperation>,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        self.apply_all(vec![ToolChange::new(tool, expected, operations)])
    }

    /// Returns the revision: a number that grows with every change. 0 for a store that was never changed.
    ///
    /// # Errors
    /// If the store does not work.
    fn revision(&self) -> BoxFuture<'_, Result<u64, StoreError>>;

    /// Returns everything that changed after a revision; everything that is offered for revision 0.
    ///
    /// # Errors
    /// If the store does not work.
    fn changes(&self, since: u64) -> BoxFuture<'_, Result<StoreChanges, StoreError>>;

    /// Returns what [`Store::changes`] returns, without the tools: `take` receives them in parts, while the next ones are read.
    /// After an error, what `take` received is incomplete.
    ///
    /// # Errors
    /// If the store does not work.
    fn changes_in_parts<'a>(
        &'a self,
        since: u64,
        take: &'a mut (dyn FnMut(Vec<OfferedTool>) + Send),
    ) -> BoxFuture<'a, Result<StoreChanges, StoreError>> {
        Box::pin(async move {
            let mut changes = self.changes(since).await?;
            let tools = std::mem::take(&mut changes.tools);
            if !tools.is_empty() {
                take(tools);
            }
            Ok(changes)
        })
    }

    /// Completes when the store has another revision than `seen`, whoever changed it. Completes early if that is
    /// unknown: the caller compares.
    fn changed(&self, seen: u64) -> BoxFuture<'_, ()>;

    /// Returns the aliases, in the order of their names.
    ///
    /// # Errors
    /// If the store does not work.
    fn aliases(&self) -> BoxFuture<'_, Result<Vec<ToolAlias>, StoreError>>;

    /// Sets an alias, or removes it if `target` is `None`. Returns `false` if there was nothing to remove.
    ///
    /// # Errors
    /// If the store does not work.
    fn set_alias<'a>(
        &'a self,
        name: &'a str,
        target: Option<ToolAlias>,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Returns the servers, in the order of their names.
    ///
    /// # Errors
    /// If the store does not work.
    fn servers(&self) -> BoxFuture<'_, Result<Vec<ServerRecord>, StoreError>>;

    /// Adds or replaces a server, or removes it if `server` is `None`. Returns `false` if there was nothing to remove.
    ///
    /// # Errors
    /// If the store does not work.
    fn set_server<'a>(
        &'a self,
        name: &'a str,
        server: Option<ServerRecord>,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;
}

/// Change of one tool.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolChange {
    /// Name of the tool.
    pub tool: Arc<str>,
    /// Revision of the record that the change is based on; 0 for a tool that does not exist.
    pub expected: u64,
    /// Operations, in their order.
    pub operations: Vec<StoreOperation>,
}

impl ToolChange {
    /// Creates a change of a tool.
    #[must_use]
    pub fn new(tool: impl Into<Arc<str>>, expected: u64, operations: Vec<StoreOperation>) -> Self {
        Self {
            tool: tool.into(),
            expected,
            operations,
        }
    }
}

/// Part of a change of one tool.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum StoreOperation {
    /// Creates the tool.
    Create {
        /// Principal that creates it.
        owner: Arc<str>,
    },
    /// Adds a version, or replaces the draft with the same number.
    Put(Box<StoredVersion>),
    /// Sets the state of a version.
    SetState {
        /// The version.
        version: Version,
        /// Its new state.
        state: VersionState,
    },
    /// Sets the latest version.
    SetLatest(LatestChange),
    /// Removes the last entry of the history of latest versions and makes the one before it the latest.
    PopLatest,
    /// Removes a draft.
    RemoveDraft {
        /// The version.
        version: Version,
    },
    /// Replaces the record of a version that an agent made.
    SetAgent {
        /// The version.
        version: Version,
        /// Its new record.
        agent: AgentVersion,
    },
}

/// Changes of a store since a revision.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct StoreChanges {
    /// Revision of the store.
    pub revision: u64,
    /// Tools that changed.
    pub tools: Vec<OfferedTool>,
    /// All aliases, if any alias changed.
    pub aliases: Option<Vec<ToolAlias>>,
    /// `true` if any server changed.
    pub servers_changed: bool,
}

/// A tool as a registry offers it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OfferedTool {
    /// Name.
    pub name: Arc<str>,
    /// Latest version, with its files. `None` if the tool is not offered.
    pub latest: Option<StoredVersion>,
    /// Reason why the tool is not offered, if the store cannot read it.
    pub problem: Option<String>,
}

impl StoreChanges {
    /// Creates a report without changes.
    #[must_use]
    pub fn new(revision: u64) -> Self {
        Self {
            revision,
            ..Self::default()
        }
    }
}

impl OfferedTool {
    /// Creates the offer of a tool.
    #[must_use]
    pub fn new(name: Arc<str>, latest: Option<StoredVersion>) -> Self {
        Self {
            name,
            latest,
            problem: None,
        }
    }

    /// Creates the report of a tool that the store cannot read. The others stay usable.
    #[must_use]
    pub fn unusable(name: Arc<str>, problem: impl Into<String>) -> Self {
        Self {
            name,
            latest: None,
            problem: Some(problem.into()),
        }
    }
}

/// Port to the reader of manifests: the store keeps documents, and a registry needs descriptors.
pub trait ReadManifest: Send + Sync {
    /// Reads the manifest of a version.
    ///
    /// # Errors
    /// If the manifest is not usable: every problem, as a fragment.
    fn read(&self, tool: &str, manifest: &RawJson) -> Result<Descriptor, String>;

    /// Checks that a tool can run here, before its version is published. Accepts every tool unless it is implemented.
    ///
    /// # Errors
    /// If it cannot run here: every reason, as a fragment.
    fn check(&self, tool: &Descriptor) -> Result<(), String> {
        let _ = tool;
        Ok(())
    }
}
