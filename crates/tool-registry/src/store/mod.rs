//! Store of tools: versions, their states, and the port to whatever keeps them.
//!
//! A [`Store`] keeps records and changes one record atomically. [`Publisher`] holds the rules: which version may be
//! published, what becomes the latest one, what a rollback restores. [`StoreSource`] offers the latest version of each
//! tool to a [`Registry`](crate::Registry), and the others on request.

mod agents;
mod error;
mod memory;
mod offer_reader;
mod port;
mod publisher;
mod record;
mod rules;
mod source;
mod version_request;

pub use self::{
    error::{IncompatibleVersion, PublishError, StoreError},
    memory::MemoryStore,
    port::{OfferedTool, ReadManifest, Store, StoreChanges, StoreOperation, ToolChange},
    publisher::{PublishOptions, Published, Publisher},
    record::{
        Acceptance, AgentVersion, AuthoredVersion, Deprecation, LatestChange, NewVersion, SecretGrant,
        ServerRecord, StoredVersion, ToolAlias, ToolFile, ToolRecord, VersionHead, VersionState,
    },
    rules::InterfaceChange,
    source::StoreSource,
    version_request::{InvalidVersionRequest, VersionRequest, split_version},
};
