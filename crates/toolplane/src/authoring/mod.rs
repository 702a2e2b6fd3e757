//! Tools that agents make: drafts, their checks and tests, and their publication.
//!
//! [`Authoring`] holds the rules; the meta-tools of [`meta_tools`] are calls of it that pass the whole stack. A draft is
//! stored beside the versions of its tool and is offered to nobody: only [`Authoring::test`] calls it.

mod checks;
mod draft;
mod error;
mod examples;
pub(crate) mod meta_tools;
mod quotas;
mod servers;
mod subject;

use std::{collections::BTreeMap, sync::Arc};

use raw_json::RawJson;
use tool_core::{
    ApprovalSubject, AuthoringAction, AuthoringChange, Caller, Descriptor, Event, Reach, SecretUse,
};
use tool_manifest::{AuthoringSpec, Configuration, Defaults, ServerSpec};
use tool_registry::bytes::Bytes;
use tool_registry::semver::Version;
use tool_registry::{
    AuthoredVersion, NewVersion, PublishError, PublishOptions, Published, Publisher, StoredVersion,
    ToolRecord, VersionState,
};

pub use self::{
    draft::{DraftMode, DraftRequest},
    error::{AuthoringError, DraftProblem},
    examples::{ExampleOutcome, TestReport},
};
use crate::Toolplane;

/// Settings of a configuration that authoring needs.
#[derive(Debug, Default)]
pub(crate) struct AuthoringState {
    pub(crate) spec: AuthoringSpec,
    /// Servers of the configuration, those of the store included.
    servers: Vec<ServerSpec>,
    defaults: Defaults,
}

impl AuthoringState {
    pub(crate) fn new(configuration: &Configuration) -> Self {
        Self {
            spec: configuration.authoring.clone(),
            servers: configuration.servers.clone(),
            defaults: configuration.defaults.clone(),
        }
    }
}

/// Tools that agents make: see [`Toolplane::authoring`].
///
/// Every method acts for one caller, who owns what it makes. A tool belongs to a caller if it made all of its versions.
///
/// # Examples
/// ```
/// use std::sync::Arc;
///
/// use toolplane::{
///     DraftMode, DraftRequest, RawJson, Toolplane,
///     core::Caller,
///     registry::MemoryStore,
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let plane = Toolplane::builder()
///     .yaml("authoring: {enabled: true, hosts: [api.example.com]}")?
///     .store(Arc::new(MemoryStore::new()))
///     .build()?;
/// let authoring = plane.authoring().expect("it is enabled, and there is a store");
/// let mut ada = Caller::new("ada");
/// ada.permissions.insert("tools.create".into());
/// let manifest = RawJson::parse(
///     r#"{"tool_id": "weather", "tool_type": "api", "version": "1.0.0", "description": "Weather at a place.",
///         "executor_config": {"url_template": "https://api.example.com/{city}"},
///         "parameters": [{"name": "city", "type": "string", "required": true}]}"#,
/// )?;
/// let draft = authoring.create(&ada, DraftRequest::new(manifest), DraftMode::Create).await?;
/// assert_eq!(&*draft.tool, "weather");
/// // Nobody is offered a draft.
/// assert!(plane.tool("weather", &ada).await.is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Authoring {
    plane: Toolplane,
    publisher: Publisher,
    state: Arc<AuthoringState>,
    /// `true` if whoever calls is an operator, to whom all tools of the store belong.
    is_operator: bool,
}

/// Draft that was stored.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DraftReport {
    /// Name of the tool.
    pub tool: Arc<str>,
    /// The version.
    pub version: Version,
    /// SHA-256 of its content.
    pub digest: [u8; 32],
    /// `false` if the same content was stored already.
    pub is_new: bool,
    /// Reach of the tool; `None` if there is no executor of its kind here.
    pub reach: Option<Reach>,
    /// Uses of secrets that no operator granted yet. The draft cannot be tested or published without them.
    pub ungranted: Vec<SecretUse>,
    /// Server that was proposed to the operators, or that they have not approved yet.
    pub proposed_server: Option<String>,
    /// Reasons for which the tool cannot run here yet, and advice.
    pub warnings: Vec<String>,
}

impl Toolplane {
    /// Returns the service by which agents make tools. `None` unless the configuration has `authoring.enabled` and the
    /// toolplane has a [store](crate::Builder::store).
    #[must_use]
    pub fn authoring(&self) -> Option<Authoring> {
        let state = self.0.authoring.load_full();
        let publisher = self.publisher().filter(|_| state.spec.enabled)?;
        Some(Authoring {
            plane: self.clone(),
            publisher: publisher.clone(),
            state,
            is_operator: false,
        })
    }

    /// Returns the service for an operator, who may test, publish and delete the drafts of everyone, whether agents may make tools
    /// or not. `None` without a [store](crate::Builder::store). What the operator creates is still checked as a tool of an agent.
    #[must_use]
    pub fn operator_authoring(&self) -> Option<Authoring> {
        Some(Authoring {
            plane: self.clone(),
            publisher: self.publisher()?.clone(),
            state: self.0.authoring.load_full(),
            is_operator: true,
        })
    }
}

impl Authoring {
    /// Checks a tool and stores it as a draft, which its author alone can test, change, publish and delete. The same content
    /// again changes nothing.
    ///
    /// # Cancellation
    /// Dropping the future leaves the draft stored or not stored.
    ///
    /// # Errors
    /// [`AuthoringError::Invalid`] with every problem that was found; if the caller may not make tools, the tool belongs to
    /// somebody else, or a quota is used up; if the store does not work.
    pub async fn create(
        &self,
        caller: &Caller,
        request: DraftRequest,
        mode: DraftMode,
    ) -> Result<DraftReport, AuthoringError> {
        self.check_author(caller)?;
        let author = author(caller);
        let draft = draft::read(self, request, mode).await?;
        let record = self.publisher.store().tool(&draft.new.tool).await?;
        self.check_owner(&draft.new.tool, record.as_ref(), &author, mode)?;
        let checked = checks::check(self, caller, &draft, record.as_ref()).await?;
        let mut new = draft.new;
        draft::lock(&self.state.defaults, &draft.descriptor, &mut new).await?;
        let digest = new.digest();
        let known = record.as_ref().and_then(|record| record.version(&new.version));
        let is_new = known.is_none_or(|known| known.digest != digest);
        if is_new {
            self.check_quotas(&author, &new).await?;
        }
        let proposed_server = servers::propose(self, caller, draft.server).await?;
        let options = PublishOptions::default().draft(true).by_agent(true);
        let published = self.publisher.publish(new, &author, options).await?;
        let action = match mode {
            DraftMode::Create => AuthoringAction::Created,
            DraftMode::Update => AuthoringAction::Updated,
        };
        if is_new {
            self.emit(
                caller,
                action,
                &published.tool,
                &published.version,
                &published.digest,
            );
        }
        let stored = self.stored(&published.tool, &published.version).await?;
        let descriptor = self.publisher.describe(&published.tool, &stored)?;
        let (ungranted, mut warnings) = self.obstacles(&descriptor);
        warnings.extend(checked.warnings);
        Ok(DraftReport {
            tool: published.tool,
            version: published.version,
            digest: published.digest,
            is_new,
            reach: self.plane.0.registry.reach(&descriptor),
            ungranted,
            proposed_server,
            warnings,
        })
    }

    /// Tests a version of the caller's tool: makes the calls of its examples, or one call with these arguments. Each is
    /// governed as a call of the published tool by this caller would be.
    ///
    /// # Cancellation
    /// Dropping the future cancels the running call.
    ///
    /// # Errors
    /// If there is no such version of a tool of the caller, or it cannot run here. Failed examples are part of the report.
    pub async fn test(
        &self,
        caller: &Caller,
        tool: &str,
        version: Option<&Version>,
        arguments: Option<RawJson>,
    ) -> Result<TestReport, AuthoringError> {
        self.check_author(caller)?;
        let (_, stored) = self.own_version(caller, tool, version).await?;
        let descriptor = Arc::new(self.publisher.describe(tool, &stored)?);
        let prepared = self.prepare(&descriptor)?;
        let report = match arguments {
            Some(arguments) => examples::call_once(self, caller, &prepared, arguments).await,
            None => examples::run(self, caller, &prepared).await,
        };
        let is_whole = report.n_examples() > 0 && report.is_passed() && !report.is_single;
        let is_draft = stored.head.state == VersionState::Draft && stored.head.agent.is_some();
        if is_whole && is_draft {
            self.publisher.set_tested(tool, &stored.head).await?;
        }
        self.emit(
            caller,
            AuthoringAction::Tested,
            tool,
            &stored.head.version,
            &stored.head.digest,
        );
        Ok(report)
    }

    /// Publishes a draft of the caller, who must have the permission `tools.publish`: the given version, or the newest draft. Its
    /// examples must succeed: they run here unless they have succeeded since the draft was changed last.
    ///
    /// A caller without the permission calls the tool `tool_publish`, which asks for an approval.
    ///
    /// # Cancellation
    /// Dropping the future leaves the version published or not.
    ///
    /// # Errors
    /// If the caller may not publish, there is no such draft of the caller, it cannot run here, an example fails, its number does
    /// not allow its changes, or a quota is used up.
    pub async fn publish(
        &self,
        caller: &Caller,
        tool: &str,
        version: Option<&Version>,
    ) -> Result<Published, AuthoringError> {
        self.check_permission(caller, AuthoringSpec::PUBLISH)?;
        self.publish_approved(caller, tool, version, None).await
    }

    /// Publishes a draft of a caller who may publish, or whose publication was approved: then only the content with this digest.
    pub(crate) async fn publish_approved(
        &self,
        caller: &Caller,
        tool: &str,
        version: Option<&Version>,
        approved: Option<[u8; 32]>,
    ) -> Result<Published, AuthoringError> {
        self.check_author(caller)?;
        // What is read here is what is published, whatever becomes of the draft meanwhile.
        let (_, stored) = self.own_draft(caller, tool, version).await?;
        if approved.is_some_and(|approved| approved != stored.head.digest) {
            return Err(AuthoringError::Changed(tool.to_owned()));
        }
        if !self.is_operator {
            self.check_published(&author(caller)).await?;
        }
        let descriptor = Arc::new(self.publisher.describe(tool, &stored)?);
        let prepared = self.prepare(&descriptor)?;
        let is_tested = stored
            .head
            .agent
            .as_ref()
            .is_some_and(|agent| agent.tested_at.is_some());
        if !is_tested && !descriptor.metadata.example_calls.is_empty() {
            let report = examples::run(self, caller, &prepared).await;
            if !report.is_passed() {
                return Err(AuthoringError::Failed(Box::new(report)));
            }
            self.publisher.set_tested(tool, &stored.head).await?;
        }
        let number = stored.head.version;
        let options = PublishOptions::default().by_agent(stored.head.agent.is_some());
        let new = NewVersion::new(tool, number.clone(), stored.manifest).with_files(stored.files);
        let published = self.publisher.publish(new, &author(caller), options).await?;
        self.emit(
            caller,
            AuthoringAction::Published,
            tool,
            &number,
            &published.digest,
        );
        Ok(published)
    }

    /// Makes a former version of the caller's tool the latest one: see [`Publisher::rollback`]. The caller must have the permission
    /// `tools.publish`, as for [`Authoring::publish`].
    ///
    /// # Cancellation
    /// Dropping the future leaves the change made or not made.
    ///
    /// # Errors
    /// If the caller may not publish, the tool does not belong to it, or there is no former version.
    pub async fn rollback(
        &self,
        caller: &Caller,
        tool: &str,
        to: Option<&Version>,
    ) -> Result<Version, AuthoringError> {
        self.check_permission(caller, AuthoringSpec::PUBLISH)?;
        self.roll_back_approved(caller, tool, to).await
    }

    /// Rolls back for a caller who may publish, or whose rollback was approved.
    pub(crate) async fn roll_back_approved(
        &self,
        caller: &Caller,
        tool: &str,
        to: Option<&Version>,
    ) -> Result<Version, AuthoringError> {
        self.check_author(caller)?;
        let author = author(caller);
        self.own_record(tool, &author).await?;
        let version = self.publisher.rollback(tool, to, &author).await?;
        let stored = self.stored(tool, &version).await?;
        self.emit(
            caller,
            AuthoringAction::RolledBack,
            tool,
            &version,
            &stored.head.digest,
        );
        Ok(version)
    }

    /// Deletes a draft of the caller: the given version, or the newest draft. Returns its version.
    ///
    /// # Cancellation
    /// Dropping the future leaves the draft deleted or not.
    ///
    /// # Errors
    /// If there is no such draft of the caller.
    pub async fn delete(
        &self,
        caller: &Caller,
        tool: &str,
        version: Option<&Version>,
    ) -> Result<Version, AuthoringError> {
        self.check_author(caller)?;
        let (_, stored) = self.own_draft(caller, tool, version).await?;
        self.publisher.remove_draft(tool, &stored.head.version).await?;
        self.emit(
            caller,
            AuthoringAction::Deleted,
            tool,
            &stored.head.version,
            &stored.head.digest,
        );
        Ok(stored.head.version)
    }

    /// Returns the drafts of the caller, in the order of the names of their tools.
    ///
    /// # Cancellation
    /// Dropping the future has no effect.
    ///
    /// # Errors
    /// If the store does not work.
    pub async fn drafts(&self, caller: &Caller) -> Result<Vec<AuthoredVersion>, AuthoringError> {
        let mut versions = self.publisher.store().versions_by(&author(caller)).await?;
        versions.retain(|version| version.head.state == VersionState::Draft);
        Ok(versions)
    }

    /// Returns a draft of the caller with its manifest and files: the given version, or the newest draft.
    ///
    /// # Cancellation
    /// Dropping the future has no effect.
    ///
    /// # Errors
    /// If there is no such draft of the caller, or the store does not work.
    pub async fn draft(
        &self,
        caller: &Caller,
        tool: &str,
        version: Option<&Version>,
    ) -> Result<StoredVersion, AuthoringError> {
        let (_, stored) = self.own_draft(caller, tool, version).await?;
        Ok(stored)
    }

    /// Returns the draft that [`Authoring::publish`] would publish, as an approver sees it: its changes, its code and what it
    /// may reach.
    ///
    /// # Cancellation
    /// Dropping the future has no effect.
    ///
    /// # Errors
    /// If there is no such draft of the caller, or the store does not work.
    pub async fn subject(
        &self,
        caller: &Caller,
        tool: &str,
        version: Option<&Version>,
    ) -> Result<ApprovalSubject, AuthoringError> {
        let (record, stored) = self.own_draft(caller, tool, version).await?;
        subject::of_draft(self, &record, &stored).await
    }

    fn check_author(&self, caller: &Caller) -> Result<(), AuthoringError> {
        self.check_permission(caller, AuthoringSpec::CREATE)
    }

    fn check_permission(&self, caller: &Caller, permission: &'static str) -> Result<(), AuthoringError> {
        match self.is_operator || caller.has_permission(permission) {
            true => Ok(()),
            false => Err(AuthoringError::NotPermitted(caller.principal.clone(), permission)),
        }
    }

    /// Checks that the tool is new, or belongs to this author.
    fn check_owner(
        &self,
        tool: &str,
        record: Option<&ToolRecord>,
        author: &str,
        mode: DraftMode,
    ) -> Result<(), AuthoringError> {
        let has_versions = record.is_some_and(|record| !record.versions.is_empty());
        match record {
            Some(record) if !self.is_operator && !record.belongs_to(author) => {
                Err(AuthoringError::NotOwner(tool.to_owned()))
            }
            Some(_) if mode == DraftMode::Create && has_versions => {
                Err(AuthoringError::Exists(tool.to_owned()))
            }
            _ if mode == DraftMode::Update && !has_versions => Err(AuthoringError::Unknown(tool.to_owned())),
            _ => Ok(()),
        }
    }

    async fn own_record(&self, tool: &str, author: &str) -> Result<ToolRecord, AuthoringError> {
        let record = self.publisher.store().tool(tool).await?;
        // A tool of somebody else does not differ from one that does not exist: its drafts are nobody's business.
        let belongs = |record: &ToolRecord| self.is_operator || record.belongs_to(author);
        let own = record.filter(|record| belongs(record) && !record.versions.is_empty());
        own.ok_or_else(|| AuthoringError::Unknown(tool.to_owned()))
    }

    async fn own_draft(
        &self,
        caller: &Caller,
        tool: &str,
        version: Option<&Version>,
    ) -> Result<(ToolRecord, StoredVersion), AuthoringError> {
        let record = self.own_record(tool, &author(caller)).await?;
        let draft = match version {
            Some(version) => record.version(version),
            None => record.newest_draft(),
        };
        let draft = draft.filter(|head| head.state == VersionState::Draft);
        let number = draft.map(|head| head.version.clone());
        let Some(number) = number else {
            return Err(AuthoringError::NoDraft(tool.to_owned(), version.cloned()));
        };
        let stored = self.stored(tool, &number).await?;
        Ok((record, stored))
    }

    /// Returns a version of a tool of the caller: the given one, the newest draft, or the latest version.
    async fn own_version(
        &self,
        caller: &Caller,
        tool: &str,
        version: Option<&Version>,
    ) -> Result<(ToolRecord, StoredVersion), AuthoringError> {
        let record = self.own_record(tool, &author(caller)).await?;
        let newest = || record.newest_draft().map(|head| head.version.clone());
        let number = version.cloned().or_else(newest).or_else(|| record.latest.clone());
        let known = number.filter(|number| record.version(number).is_some());
        let Some(number) = known else {
            return Err(AuthoringError::NoDraft(tool.to_owned(), version.cloned()));
        };
        let stored = self.stored(tool, &number).await?;
        Ok((record, stored))
    }

    async fn stored(&self, tool: &str, version: &Version) -> Result<StoredVersion, AuthoringError> {
        let stored = self.publisher.store().version(tool, version).await?;
        stored.ok_or_else(|| AuthoringError::NoDraft(tool.to_owned(), Some(version.clone())))
    }

    fn prepare(&self, descriptor: &Arc<Descriptor>) -> Result<Arc<tool_core::Tool>, AuthoringError> {
        let made = self.plane.0.registry.make_tool(descriptor);
        made.map_err(|refused| AuthoringError::CannotRun(refused.name, refused.reason))
    }

    /// Returns the secrets that are not granted, and other reasons for which a draft cannot run here.
    fn obstacles(&self, descriptor: &Descriptor) -> (Vec<SecretUse>, Vec<String>) {
        let registry = &self.plane.0.registry;
        let needed = registry
            .reach(descriptor)
            .map(|reach| reach.secrets)
            .unwrap_or_default();
        let is_missing = |needed: &SecretUse| !descriptor.origin.granted.contains(needed);
        let ungranted: Vec<_> = needed.into_iter().filter(is_missing).collect();
        let mut warnings = Vec::new();
        // Without the secrets, the executor would say no more than that they are missing.
        if ungranted.is_empty()
            && let Err(refused) = registry.check(descriptor)
        {
            warnings.push(format!(
                "it cannot run here, so it cannot be published: {}",
                refused.reason
            ));
        }
        (ungranted, warnings)
    }

    fn emit(
        &self,
        caller: &Caller,
        action: AuthoringAction,
        tool: &str,
        version: &Version,
        digest: &[u8; 32],
    ) {
        let change = AuthoringChange::new(action, tool, version.to_string(), caller, *digest);
        self.plane.0.observers.emit(&Event::authored(&change));
    }
}

/// Returns the name of a caller among the authors of versions, with its tenant unless that is the default: a principal of one tenant
/// is not taken for one of another.
pub(crate) fn author(caller: &Caller) -> String {
    match &*caller.tenant {
        Caller::DEFAULT_TENANT if !caller.principal.ends_with(')') => caller.principal.to_string(),
        tenant => format!("{} ({tenant})", caller.principal),
    }
}

/// Files by their paths.
pub(crate) type DraftFiles = BTreeMap<String, Bytes>;

impl From<tool_registry::StoreError> for AuthoringError {
    fn from(error: tool_registry::StoreError) -> Self {
        Self::Publish(PublishError::Store(error))
    }
}
