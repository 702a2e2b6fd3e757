use std::{collections::BTreeMap, sync::Arc, time::SystemTime};

use raw_json::RawJson;
use semver::Version;
use sha2::{Digest as _, Sha256};
use tool_core::SecretUse;

/// Record of a tool in a [`Store`](crate::Store): all its versions, without their content.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolRecord {
    /// Name, as agents see it.
    pub name: Arc<str>,
    /// Principal that created the tool.
    pub owner: Arc<str>,
    /// The version that a call without a version gets. `None` while nothing is published.
    pub latest: Option<Version>,
    /// Revision of the store in which the record last changed. A change names the revision that it is based on.
    pub revision: u64,
    /// Versions, in the order of their numbers.
    pub versions: Vec<VersionHead>,
    /// Changes of `latest`, oldest first: what a rollback goes back through.
    pub history: Vec<LatestChange>,
}

/// A version without its content.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct VersionHead {
    /// Semantic version.
    pub version: Version,
    /// SHA-256 of the manifest and of all files: see [`NewVersion::digest`].
    pub digest: [u8; 32],
    /// State.
    pub state: VersionState,
    /// Time of creation.
    pub created_at: SystemTime,
    /// Principal that created it.
    pub created_by: Arc<str>,
    /// Change of the interface against the version before it, as published.
    pub change: Option<String>,
    /// Record of a version that an agent made. `None` if an operator made it.
    pub agent: Option<AgentVersion>,
}

/// Record of a version that an agent made: what operators allow it, and whether it was tested.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct AgentVersion {
    /// Operator who accepted what the version declares, and the time.
    pub accepted: Option<Acceptance>,
    /// Time at which all its examples last succeeded.
    pub tested_at: Option<SystemTime>,
    /// Secrets that it may use.
    pub grants: Vec<SecretGrant>,
}

/// A version that an agent made, as [`Store::versions_by`](crate::Store::versions_by) returns it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AuthoredVersion {
    /// Name of the tool.
    pub tool: Arc<str>,
    /// The version.
    pub head: VersionHead,
    /// Size of its manifest and its files, in bytes.
    pub n_bytes: u64,
}

/// Acceptance by an operator of what a version declares.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Acceptance {
    /// Operator.
    pub by: Arc<str>,
    /// Time.
    pub at: SystemTime,
}

/// Permission of a version to use a secret in one field, for one destination. Another version has another digest, so that no
/// grant applies to it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SecretGrant {
    /// Reference to the secret as the manifest has it, such as `${API_KEY}`.
    pub secret: String,
    /// Field of the manifest's executor settings, as a JSON pointer (RFC 6901).
    pub field: String,
    /// Place that receives the secret: an origin such as `https://api.example.com`, or the kind of the executor for code.
    pub destination: String,
    /// Digest of the version that it is for.
    pub digest: [u8; 32],
    /// Operator who granted it.
    pub by: Arc<str>,
    /// Time.
    pub at: SystemTime,
}

/// State of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum VersionState {
    /// Not published: its content may still change.
    Draft,
    /// Published: its content never changes.
    Published,
    /// Published, and to be replaced.
    Deprecated(Deprecation),
    /// Withdrawn: only a request for exactly this version or its digest gets it.
    Yanked {
        /// Reason, for callers and operators.
        reason: String,
    },
}

/// Reason and replacement of a deprecated version.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Deprecation {
    /// Tool to use instead, `tool` or `tool@version`.
    pub replacement: Option<String>,
    /// Day on which it may disappear, `YYYY-MM-DD`.
    pub until: Option<String>,
    /// Reason, for callers and operators.
    pub reason: Option<String>,
}

/// Change of the latest version.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LatestChange {
    /// The latest version after the change; `None` if the tool was withdrawn.
    pub version: Option<Version>,
    /// Time.
    pub at: SystemTime,
    /// Principal that made it.
    pub by: Arc<str>,
}

/// File of a version, such as a script.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolFile {
    /// Content.
    pub content: bytes::Bytes,
}

/// A version with its content.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StoredVersion {
    /// The version.
    pub head: VersionHead,
    /// Manifest: a document that describes one tool.
    pub manifest: RawJson,
    /// Files by their relative path, with `/` between its parts.
    pub files: BTreeMap<String, ToolFile>,
}

/// A version to add.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct NewVersion {
    /// Name of the tool.
    pub tool: Arc<str>,
    /// Semantic version.
    pub version: Version,
    /// Manifest: a document that describes one tool.
    pub manifest: RawJson,
    /// Files by their relative path.
    pub files: BTreeMap<String, ToolFile>,
}

/// A second name under which a version of a tool is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolAlias {
    /// Name, as agents see it.
    pub name: Arc<str>,
    /// Name of the tool.
    pub tool: Arc<str>,
    /// Request for its version, as written.
    pub version: String,
}

/// An MCP server in a store.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ServerRecord {
    /// Name, unique among servers.
    pub name: Arc<str>,
    /// Settings: the entry of `servers` in a configuration.
    pub settings: RawJson,
    /// `true` if the operator vouches for it as official.
    pub is_official: bool,
    /// Time of creation.
    pub created_at: SystemTime,
    /// Time of the last change.
    pub updated_at: SystemTime,
    /// Agent that proposed it. A proposed server is not started. `None` once an operator approved it, or if an operator added it.
    pub proposed_by: Option<Arc<str>>,
}

impl ToolRecord {
    /// Creates the record of a tool without versions.
    #[must_use]
    pub fn new(name: Arc<str>, owner: Arc<str>, revision: u64) -> Self {
        Self {
            name,
            owner,
            latest: None,
            revision,
            versions: Vec::new(),
            history: Vec::new(),
        }
    }

    /// Returns a version.
    #[must_use]
    pub fn version(&self, version: &Version) -> Option<&VersionHead> {
        self.versions.iter().find(|head| head.version == *version)
    }
}

impl VersionHead {
    /// Creates the head of a version.
    #[must_use]
    pub fn new(
        version: Version,
        digest: [u8; 32],
        state: VersionState,
        created_at: SystemTime,
        created_by: Arc<str>,
    ) -> Self {
        Self {
            version,
            digest,
            state,
            created_at,
            created_by,
            change: None,
            agent: None,
        }
    }

    /// Sets the record of a version that an agent made.
    #[must_use]
    pub fn with_agent(mut self, agent: Option<AgentVersion>) -> Self {
        self.agent = agent;
        self
    }

    /// Sets the change of the interface against the version before it.
    #[must_use]
    pub fn with_change(mut self, change: Option<String>) -> Self {
        self.change = change;
        self
    }
}

impl AuthoredVersion {
    /// Creates the entry of a version.
    #[must_use]
    pub fn new(tool: impl Into<Arc<str>>, head: VersionHead, n_bytes: u64) -> Self {
        Self {
            tool: tool.into(),
            head,
            n_bytes,
        }
    }
}

impl Acceptance {
    /// Creates the acceptance by an operator at this time.
    #[must_use]
    pub fn new(by: impl Into<Arc<str>>, at: SystemTime) -> Self {
        Self { by: by.into(), at }
    }
}

impl SecretGrant {
    /// Creates the permission of the version with this digest to use a secret.
    #[must_use]
    pub fn new(needed: SecretUse, digest: [u8; 32], by: impl Into<Arc<str>>, at: SystemTime) -> Self {
        Self {
            secret: needed.secret,
            field: needed.field,
            destination: needed.destination,
            digest,
            by: by.into(),
            at,
        }
    }

    /// Returns `true` if it is for this use of a secret by the version with this digest.
    #[must_use]
    pub fn covers(&self, needed: &SecretUse, digest: &[u8; 32]) -> bool {
        self.digest == *digest
            && self.secret == needed.secret
            && self.field == needed.field
            && self.destination == needed.destination
    }
}

impl VersionState {
    /// Returns `true` if `latest` and ranges may select a version in this state.
    #[must_use]
    pub const fn is_current(&self) -> bool {
        matches!(self, Self::Published | Self::Deprecated(_))
    }

    /// Returns the state as a word.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Published => "published",
            Self::Deprecated(_) => "deprecated",
            Self::Yanked { .. } => "yanked",
        }
    }
}

impl Deprecation {
    /// Returns the sentence that callers and operators read.
    #[must_use]
    pub fn sentence(&self) -> String {
        let mut text = "Deprecated".to_owned();
        if let Some(until) = &self.until {
            text.push_str(&format!(", to be removed on {until}"));
        }
        if let Some(replacement) = &self.replacement {
            text.push_str(&format!("; use `{replacement}` instead"));
        }
        if let Some(reason) = &self.reason {
            text.push_str(&format!(": {reason}"));
        }
        text.push('.');
        text
    }

    /// Sets the tool to use instead.
    #[must_use]
    pub fn with_replacement(mut self, replacement: Option<String>) -> Self {
        self.replacement = replacement;
        self
    }

    /// Sets the day on which the version may disappear, `YYYY-MM-DD`.
    #[must_use]
    pub fn with_until(mut self, until: Option<String>) -> Self {
        self.until = until;
        self
    }

    /// Sets the reason.
    #[must_use]
    pub fn with_reason(mut self, reason: Option<String>) -> Self {
        self.reason = reason;
        self
    }
}

impl LatestChange {
    /// Creates a change of the latest version.
    #[must_use]
    pub fn new(version: Option<Version>, at: SystemTime, by: Arc<str>) -> Self {
        Self { version, at, by }
    }
}

impl ToolFile {
    /// Creates a file with this content.
    #[must_use]
    pub fn new(content: impl Into<bytes::Bytes>) -> Self {
        Self {
            content: content.into(),
        }
    }
}

impl StoredVersion {
    /// Creates a version with its content.
    #[must_use]
    pub fn new(head: VersionHead, manifest: RawJson, files: BTreeMap<String, ToolFile>) -> Self {
        Self {
            head,
            manifest,
            files,
        }
    }
}

impl StoredVersion {
    /// Returns the size of the manifest and of all files, in bytes.
    #[must_use]
    pub fn n_bytes(&self) -> u64 {
        let files = self.files.values().map(|file| file.content.len());
        (self.manifest.as_str().len() + files.sum::<usize>()) as u64
    }
}

impl NewVersion {
    /// Creates a version without files.
    #[must_use]
    pub fn new(tool: impl Into<Arc<str>>, version: Version, manifest: RawJson) -> Self {
        Self {
            tool: tool.into(),
            version,
            manifest,
            files: BTreeMap::new(),
        }
    }

    /// Sets the files.
    #[must_use]
    pub fn with_files(mut self, files: BTreeMap<String, ToolFile>) -> Self {
        self.files = files;
        self
    }

    /// Returns the SHA-256 of the version: of the canonical form (RFC 8785) of its manifest and of the digests of its
    /// files by path. The version's number is part of the manifest only as far as the manifest states it, so that equal
    /// content under two numbers is recognizable.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        let files = self.files.iter();
        let sums = files.map(|(path, file)| (path.as_str(), Sha256::digest(&file.content).into()));
        Self::digest_of(&self.manifest, sums)
    }

    /// Returns the [digest](Self::digest) of a version with this manifest, and with files of these paths and SHA-256 digests,
    /// in the order of the paths.
    pub fn digest_of<'a>(
        manifest: &RawJson,
        files: impl IntoIterator<Item = (&'a str, [u8; 32])>,
    ) -> [u8; 32] {
        let files = files.into_iter();
        let files = files.map(|(path, sum)| (path, RawJson::from(raw_json::hex(&sum).as_str())));
        let files = RawJson::from_members(&files.collect::<Vec<_>>());
        let whole = RawJson::from_members(&[("manifest", manifest.clone()), ("files", files)]);
        raw_json::digest(&whole)
    }
}

impl ToolAlias {
    /// Creates a second name for a version of a tool.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, tool: impl Into<Arc<str>>, version: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            tool: tool.into(),
            version: version.into(),
        }
    }
}

impl ServerRecord {
    /// Creates the record of a server.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, settings: RawJson, at: SystemTime) -> Self {
        Self {
            name: name.into(),
            settings,
            is_official: false,
            created_at: at,
            updated_at: at,
            proposed_by: None,
        }
    }

    /// Sets the agent that proposes the server.
    #[must_use]
    pub fn with_proposed_by(mut self, proposed_by: Option<Arc<str>>) -> Self {
        self.proposed_by = proposed_by;
        self
    }

    /// Sets whether the operator vouches for the server.
    #[must_use]
    pub fn with_official(mut self, is_official: bool) -> Self {
        self.is_official = is_official;
        self
    }
}
