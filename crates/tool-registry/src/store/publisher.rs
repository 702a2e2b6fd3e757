use std::{collections::HashSet, fmt, sync::Arc};

use semver::Version;
use tool_core::{Clock, Descriptor};

use super::{
    AgentVersion, Deprecation, InterfaceChange, LatestChange, NewVersion, PublishError, ReadManifest, Store,
    StoreOperation, StoredVersion, ToolAlias, ToolChange, ToolRecord, VersionHead, VersionRequest,
    VersionState,
    offer_reader::{agent_origin, complete},
    rules,
};

/// Publishes, deprecates, yanks and rolls back versions of the tools in a [`Store`]. Clones share the store.
///
/// # Rules
/// - A published version never changes. Publishing the same content again succeeds and changes nothing.
/// - A published version can run here: [`ReadManifest::check`] accepts it. A draft need not.
/// - A version is greater than every published version of its major line.
/// - A version that does not accept all that the one before it did needs the next major number (below 1.0.0: the next
///   minor number). If neither is proven, the number is needed too, unless the publisher declares it compatible.
/// - Publishing a version makes it the latest one if it is greater than the latest one, and no pre-release beside a release.
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use tool_core::{Descriptor, ExecutorSpec, RawJson, SystemClock};
/// use tool_registry::{MemoryStore, NewVersion, PublishOptions, Publisher, ReadManifest};
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
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let publisher = Publisher::new(Arc::new(MemoryStore::new()), Arc::new(Mocks), Arc::new(SystemClock::new()));
/// let first = NewVersion::new("greet", "1.0.0".parse()?, RawJson::object());
/// publisher.publish(first, "ada", PublishOptions::default()).await?;
/// let second = NewVersion::new("greet", "1.1.0".parse()?, RawJson::object());
/// let published = publisher.publish(second, "ada", PublishOptions::default()).await?;
/// assert_eq!(published.latest, Some("1.1.0".parse()?));
/// let latest = publisher.rollback("greet", None, "ada").await?;
/// assert_eq!(latest.to_string(), "1.0.0");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Publisher {
    store: Arc<dyn Store>,
    manifests: Arc<dyn ReadManifest>,
    clock: Arc<dyn Clock>,
}

/// Options of a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PublishOptions {
    /// Stores a draft instead of a published version.
    pub is_draft: bool,
    /// Declares the version compatible where neither that nor the opposite is proven.
    pub is_declared_compatible: bool,
    /// Makes no change, and returns what would be published.
    pub is_dry_run: bool,
    /// Stores a version that an agent made. A draft of an agent stays one in any case, when it is published as it is.
    pub is_by_agent: bool,
}

/// Result of a publication.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Published {
    /// Name of the tool.
    pub tool: Arc<str>,
    /// The version.
    pub version: Version,
    /// SHA-256 of its content.
    pub digest: [u8; 32],
    /// State of the version.
    pub state: VersionState,
    /// Latest version of the tool afterwards.
    pub latest: Option<Version>,
    /// Version that it was compared with.
    pub before: Option<Version>,
    /// Change of the interface against `before`.
    pub change: InterfaceChange,
    /// `false` if the same content was published already.
    pub is_new: bool,
}

impl PublishOptions {
    /// Stores a draft instead of a published version.
    #[must_use]
    pub fn draft(mut self, is_draft: bool) -> Self {
        self.is_draft = is_draft;
        self
    }

    /// Declares the version compatible where neither that nor the opposite is proven.
    #[must_use]
    pub fn declared_compatible(mut self, is_declared: bool) -> Self {
        self.is_declared_compatible = is_declared;
        self
    }

    /// Returns the state of a version that is stored with these options.
    fn state(self) -> VersionState {
        match self.is_draft {
            true => VersionState::Draft,
            false => VersionState::Published,
        }
    }

    /// Stores a version that an agent made.
    #[must_use]
    pub fn by_agent(mut self, is_by_agent: bool) -> Self {
        self.is_by_agent = is_by_agent;
        self
    }

    /// Makes no change.
    #[must_use]
    pub fn dry_run(mut self, is_dry_run: bool) -> Self {
        self.is_dry_run = is_dry_run;
        self
    }
}

impl Published {
    /// Returns the result for a version that is published already, with the same content.
    fn known(new: NewVersion, known: &VersionHead, record: &ToolRecord) -> Self {
        Self {
            tool: new.tool,
            version: new.version,
            digest: known.digest,
            state: known.state.clone(),
            latest: record.latest.clone(),
            before: None,
            change: InterfaceChange::Unchanged,
            is_new: false,
        }
    }
}

impl Publisher {
    /// Creates a publisher for a store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, manifests: Arc<dyn ReadManifest>, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            manifests,
            clock,
        }
    }

    /// Returns the store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Publishes a version, or stores it as a draft.
    ///
    /// # Cancellation
    /// Dropping the future leaves the version published or not; publishing it again tells and repeats nothing.
    ///
    /// # Errors
    /// If the version is against the rules of the [`Publisher`], if somebody else changed the tool meanwhile, or if the
    /// store does not work.
    pub async fn publish(
        &self,
        new: NewVersion,
        by: &str,
        options: PublishOptions,
    ) -> Result<Published, PublishError> {
        let (published, change) = self.plan(new, by, options).await?;
        if let Some(change) = change.filter(|_| !options.is_dry_run) {
            self.store.apply_all(vec![change]).await?;
        }
        Ok(published)
    }

    /// Publishes a version of each of several tools, all or none.
    ///
    /// # Cancellation
    /// As for [`Publisher::publish`].
    ///
    /// # Errors
    /// As for [`Publisher::publish`], and if two of the versions are of the same tool.
    pub async fn publish_all(
        &self,
        versions: Vec<NewVersion>,
        by: &str,
        options: PublishOptions,
    ) -> Result<Vec<Published>, PublishError> {
        let mut names = HashSet::new();
        if let Some(twice) = versions.iter().find(|new| !names.insert(new.tool.clone())) {
            let message = format!("`{}` is to be published twice at once", twice.tool);
            return Err(PublishError::Invalid(message));
        }
        let (mut published, mut changes) = (Vec::new(), Vec::new());
        for new in versions {
            let (one, change) = self.plan(new, by, options).await?;
            published.push(one);
            changes.extend(change);
        }
        if !options.is_dry_run && !changes.is_empty() {
            self.store.apply_all(changes).await?;
        }
        Ok(published)
    }

    /// Checks a publication, and returns its result and its change; no change if the same content is published already.
    async fn plan(
        &self,
        new: NewVersion,
        by: &str,
        options: PublishOptions,
    ) -> Result<(Published, Option<ToolChange>), PublishError> {
        rules::check_content(&new)?;
        let descriptor = self.read(&new)?;
        let digest = new.digest();
        let now = self.clock.wall();
        let (record, expected) = match self.store.tool(&new.tool).await? {
            Some(record) => {
                let revision = record.revision;
                (record, revision)
            }
            None => (ToolRecord::new(new.tool.clone(), by.into(), 0), 0),
        };
        let known = record.version(&new.version);
        if let Some(known) = known.filter(|known| known.state != VersionState::Draft) {
            if known.digest != digest {
                return Err(PublishError::Immutable {
                    tool: new.tool.to_string(),
                    version: new.version,
                });
            }
            return Ok((Published::known(new, known, &record), None));
        }
        // The same draft stays with its author and what operators allowed it.
        let same = known.filter(|draft| draft.agent.is_some() && draft.digest == digest);
        let agent = match same {
            Some(draft) => draft.agent.clone(),
            None => options.is_by_agent.then(AgentVersion::default),
        };
        let author = same.map_or_else(|| by.into(), |draft| draft.created_by.clone());
        let (before, change) = self.compare(&record, &new.version, &descriptor).await?;
        if !options.is_draft {
            self.check(&new, descriptor, agent.as_ref())?;
            rules::check_newer(&record, &new.version)?;
            if let Some(before) = &before {
                let declared = options.is_declared_compatible;
                rules::check_change(&new.tool, before, &new.version, &change, declared)?;
            }
        }
        let state = options.state();
        let head = VersionHead::new(new.version.clone(), digest, state.clone(), now, author)
            .with_change(change.phrase())
            .with_agent(agent);
        let stored = StoredVersion::new(head, new.manifest, new.files);
        let mut operations = Vec::new();
        if expected == 0 {
            operations.push(StoreOperation::Create { owner: by.into() });
        }
        operations.push(StoreOperation::Put(Box::new(stored)));
        let mut latest = record.latest.clone();
        if !options.is_draft && becomes_latest(&new.version, record.latest.as_ref()) {
            latest = Some(new.version.clone());
            operations.push(StoreOperation::SetLatest(LatestChange::new(
                latest.clone(),
                now,
                by.into(),
            )));
        }
        let changed = ToolChange::new(new.tool.clone(), expected, operations);
        let published = Published {
            tool: new.tool,
            version: new.version,
            digest,
            state,
            latest,
            before,
            change,
            is_new: true,
        };
        Ok((published, Some(changed)))
    }

    /// Publishes a draft as it is.
    ///
    /// # Cancellation
    /// As for [`Publisher::publish`].
    ///
    /// # Errors
    /// As for [`Publisher::publish`], and if the version is no draft.
    pub async fn publish_draft(
        &self,
        tool: &str,
        version: &Version,
        by: &str,
        options: PublishOptions,
    ) -> Result<Published, PublishError> {
        let (record, head) = self.select(tool, &VersionRequest::Exact(version.clone())).await?;
        if head.state != VersionState::Draft {
            return Err(state_error(&record, &head, "published again"));
        }
        let stored = self.content(&record, &head).await?;
        let new = NewVersion::new(record.name, head.version, stored.manifest).with_files(stored.files);
        self.publish(new, by, options.draft(false)).await
    }

    /// Marks a version as deprecated; with `None`, as published again.
    ///
    /// # Cancellation
    /// Dropping the future leaves the change made or not made.
    ///
    /// # Errors
    /// If the version does not exist, is a draft or yanked, if somebody else changed the tool meanwhile, or if the store
    /// does not work.
    pub async fn deprecate(
        &self,
        tool: &str,
        request: &VersionRequest,
        deprecation: Option<Deprecation>,
    ) -> Result<VersionHead, PublishError> {
        let (record, mut head) = self.select(tool, request).await?;
        if !head.state.is_current() {
            return Err(state_error(&record, &head, "deprecated"));
        }
        head.state = deprecation.map_or(VersionState::Published, VersionState::Deprecated);
        let set = set_state(&head);
        self.store.apply(tool, record.revision, vec![set]).await?;
        Ok(head)
    }

    /// Withdraws a version: it stays available by its exact version or its digest only. If it was the latest version, the
    /// greatest remaining one becomes that. Returns the latest version afterwards.
    ///
    /// # Cancellation
    /// Dropping the future leaves the change made or not made.
    ///
    /// # Errors
    /// If the version does not exist, is a draft or yanked already, if somebody else changed the tool meanwhile, or if the
    /// store does not work.
    pub async fn yank(
        &self,
        tool: &str,
        version: &Version,
        reason: &str,
        by: &str,
    ) -> Result<Option<Version>, PublishError> {
        let (record, mut head) = self.select(tool, &VersionRequest::Exact(version.clone())).await?;
        if !head.state.is_current() {
            return Err(state_error(&record, &head, "yanked"));
        }
        head.state = VersionState::Yanked {
            reason: reason.to_owned(),
        };
        let mut operations = vec![set_state(&head)];
        let mut latest = record.latest.clone();
        if record.latest.as_ref() == Some(version) {
            latest = rules::latest_without(&record, version);
            let change = LatestChange::new(latest.clone(), self.clock.wall(), by.into());
            operations.push(StoreOperation::SetLatest(change));
        }
        self.store.apply(tool, record.revision, operations).await?;
        Ok(latest)
    }

    /// Makes a former version the latest one: `to`, or the one that was the latest before the present one. Former versions
    /// that are yanked are skipped. Returns it.
    ///
    /// # Cancellation
    /// Dropping the future leaves the change made or not made.
    ///
    /// # Errors
    /// If there is no such version, if somebody else changed the tool meanwhile, or if the store does not work.
    pub async fn rollback(
        &self,
        tool: &str,
        to: Option<&Version>,
        by: &str,
    ) -> Result<Version, PublishError> {
        let record = self.record(tool).await?;
        if let Some(to) = to {
            let (record, head) = self.select(tool, &VersionRequest::Exact(to.clone())).await?;
            if !head.state.is_current() {
                return Err(state_error(&record, &head, "the latest version"));
            }
            let change = LatestChange::new(Some(to.clone()), self.clock.wall(), by.into());
            let operations = vec![StoreOperation::SetLatest(change)];
            self.store.apply(tool, record.revision, operations).await?;
            return Ok(to.clone());
        }
        let is_usable = |change: &LatestChange| {
            let head = change
                .version
                .as_ref()
                .and_then(|version| record.version(version));
            head.is_some_and(|head| head.state.is_current() && Some(&head.version) != record.latest.as_ref())
        };
        let former = record.history.iter().rposition(is_usable);
        let Some(former) = former else {
            return Err(PublishError::NoFormer {
                tool: tool.to_owned(),
            });
        };
        let n_later = record.history.len() - 1 - former;
        let operations = vec![StoreOperation::PopLatest; n_later];
        self.store.apply(tool, record.revision, operations).await?;
        Ok(record.history[former]
            .version
            .clone()
            .unwrap_or_else(|| Version::new(0, 0, 0)))
    }

    /// Removes a draft.
    ///
    /// # Cancellation
    /// Dropping the future leaves the change made or not made.
    ///
    /// # Errors
    /// If the version does not exist or is no draft, if somebody else changed the tool meanwhile, or if the store does not
    /// work.
    pub async fn remove_draft(&self, tool: &str, version: &Version) -> Result<(), PublishError> {
        let (record, head) = self.select(tool, &VersionRequest::Exact(version.clone())).await?;
        if !VersionRequest::is_draft(&head) {
            return Err(state_error(&record, &head, "removed"));
        }
        let operation = StoreOperation::RemoveDraft {
            version: version.clone(),
        };
        self.store.apply(tool, record.revision, vec![operation]).await?;
        Ok(())
    }

    /// Lists a version of a tool under a second name.
    ///
    /// # Cancellation
    /// Dropping the future leaves the change made or not made.
    ///
    /// # Errors
    /// If the name is not valid or that of a tool in the store, if there is no such version, or if the store does not work.
    pub async fn set_alias(&self, alias: ToolAlias) -> Result<VersionHead, PublishError> {
        tool_core::check_name(&alias.name).map_err(|error| PublishError::Invalid(error.to_string()))?;
        let (_, head) = self.select(&alias.tool, &alias.version.parse()?).await?;
        if self.store.tool(&alias.name).await?.is_some() {
            let message = format!("`{}` is the name of a tool in the store", alias.name);
            return Err(PublishError::Invalid(message));
        }
        let name = alias.name.clone();
        self.store.set_alias(&name, Some(alias)).await?;
        Ok(head)
    }

    /// Returns the record of a tool.
    ///
    /// # Cancellation
    /// Dropping the future changes nothing.
    ///
    /// # Errors
    /// If there is no such tool, or if the store does not work.
    pub async fn record(&self, tool: &str) -> Result<ToolRecord, PublishError> {
        let record = self.store.tool(tool).await?;
        record.ok_or_else(|| PublishError::UnknownTool {
            tool: tool.to_owned(),
        })
    }

    /// Returns a version with its content.
    ///
    /// # Cancellation
    /// Dropping the future changes nothing.
    ///
    /// # Errors
    /// If there is no such version, or if the store does not work.
    pub async fn find(&self, tool: &str, request: &VersionRequest) -> Result<StoredVersion, PublishError> {
        let (record, head) = self.select(tool, request).await?;
        self.content(&record, &head).await
    }

    pub(super) fn manifests(&self) -> &dyn ReadManifest {
        &*self.manifests
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    pub(super) async fn select(
        &self,
        tool: &str,
        request: &VersionRequest,
    ) -> Result<(ToolRecord, VersionHead), PublishError> {
        let record = self.record(tool).await?;
        let Some(head) = request.select(&record).cloned() else {
            let known: Vec<_> = record
                .versions
                .iter()
                .map(|head| head.version.to_string())
                .collect();
            return Err(PublishError::UnknownVersion {
                tool: tool.to_owned(),
                version: request.to_string(),
                known: known.join(", "),
            });
        };
        Ok((record, head))
    }

    async fn content(&self, record: &ToolRecord, head: &VersionHead) -> Result<StoredVersion, PublishError> {
        let found = self.store.version(&record.name, &head.version).await?;
        found.ok_or_else(|| PublishError::UnknownVersion {
            tool: record.name.to_string(),
            version: head.version.to_string(),
            known: String::new(),
        })
    }

    /// Reads the manifest and checks that it describes this version of this tool.
    fn read(&self, new: &NewVersion) -> Result<Descriptor, PublishError> {
        let descriptor = self.manifests.read(&new.tool, &new.manifest);
        let descriptor = descriptor.map_err(PublishError::Invalid)?;
        if descriptor.name != new.tool {
            let message = format!("the manifest describes `{}`, not `{}`", descriptor.name, new.tool);
            return Err(PublishError::Invalid(message));
        }
        let written = descriptor.version.as_deref();
        if let Some(written) = written.filter(|written| **written != new.version.to_string()) {
            let message = format!("the manifest has the version `{written}`, not `{}`", new.version);
            return Err(PublishError::Invalid(message));
        }
        Ok(descriptor)
    }

    /// Checks that a version can run here.
    fn check(
        &self,
        new: &NewVersion,
        mut descriptor: Descriptor,
        agent: Option<&AgentVersion>,
    ) -> Result<(), PublishError> {
        let place = (self.store.name(), &*new.tool);
        complete(&mut descriptor, place, &new.version, &new.files);
        if let Some(agent) = agent {
            descriptor.origin = agent_origin(&descriptor, agent, &new.digest());
        }
        self.manifests.check(&descriptor).map_err(PublishError::Invalid)
    }

    /// Compares a version with the one before it.
    async fn compare(
        &self,
        record: &ToolRecord,
        version: &Version,
        new: &Descriptor,
    ) -> Result<(Option<Version>, InterfaceChange), PublishError> {
        let Some(before) = rules::version_before(record, version) else {
            return Ok((None, InterfaceChange::Unchanged));
        };
        let change = match self.store.version(&record.name, before).await? {
            None => InterfaceChange::Unproven(format!("`{before}` is gone")),
            Some(stored) => match self.manifests.read(&record.name, &stored.manifest) {
                Ok(old) => {
                    let new = new.clone();
                    let compared = tokio::task::spawn_blocking(move || InterfaceChange::between(&old, &new));
                    let failed = |error| InterfaceChange::Unproven(format!("the comparison failed: {error}"));
                    compared.await.unwrap_or_else(failed)
                }
                Err(reason) => InterfaceChange::Unproven(format!("`{before}` cannot be read: {reason}")),
            },
        };
        Ok((Some(before.clone()), change))
    }
}

/// Returns `true` if a published version becomes the latest one.
fn becomes_latest(version: &Version, latest: Option<&Version>) -> bool {
    latest.is_none_or(|latest| version > latest && (version.pre.is_empty() || !latest.pre.is_empty()))
}

fn set_state(head: &VersionHead) -> StoreOperation {
    StoreOperation::SetState {
        version: head.version.clone(),
        state: head.state.clone(),
    }
}

fn state_error(record: &ToolRecord, head: &VersionHead, change: &'static str) -> PublishError {
    PublishError::State {
        tool: record.name.to_string(),
        version: head.version.clone(),
        state: head.state.as_str(),
        change,
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}
