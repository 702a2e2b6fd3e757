//! Registry of tools: sources, names, resolution into ready tools, snapshots.
//!
//! A [`Registry`] takes descriptors from its sources (files, MCP servers), resolves them into ready [`tool_core::Tool`]s and
//! holds the result as one immutable [`Snapshot`], so that a call only looks up a name in a map. A source is loaded when
//! something that it may hold is requested. If it fails, its tools are missing with the reason, and all others are available.
//!
//! # Examples
//! An executor, a source with two tools, and a call of one of them:
//! ```
//! use std::sync::Arc;
//!
//! use tool_core::{
//!     Arguments, CallContext, Descriptor, DynBackend, Executor, ExecutorSpec, Invoke, PrepareError, RawJson,
//!     TargetBackend, ToolError, invoke_fn, serde_json::json,
//! };
//! use tool_registry::{FixedSource, Registry, RegistryParts};
//!
//! /// Executor of kind `echo`: its tools return their arguments.
//! struct Echo;
//!
//! impl Executor for Echo {
//!     fn kind(&self) -> &str {
//!         "echo"
//!     }
//!
//!     fn prepare(&self, _: &Descriptor) -> Result<Arc<dyn DynBackend>, Vec<PrepareError>> {
//!         let echo = |arguments: Arc<Arguments>| async move { Ok::<_, ToolError>(arguments.raw().clone()) };
//!         Ok(Arc::new(invoke_fn(echo)))
//!     }
//!
//!     fn config_schema(&self) -> RawJson {
//!         RawJson::object()
//!     }
//! }
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), ToolError> {
//!     let tool = |name: &str, kind: &str| Arc::new(Descriptor::new(name, ExecutorSpec::new(kind)));
//!     let tools = vec![tool("repeat", "echo"), tool("send", "fax")];
//!     let parts = RegistryParts::default()
//!         .with_sources([Arc::new(FixedSource::new("program", tools)) as _])
//!         .with_executors([Arc::new(Echo) as _]);
//!     let registry = Registry::new(parts);
//!
//!     let repeat = registry.find("repeat").await.expect("its executor is there");
//!     let mut cx = CallContext::local(&repeat, Arguments::from_serialize(&json!({"a": 1}))?);
//!     let reply = TargetBackend.invoke(&mut cx).await?.into_reply()?;
//!     assert_eq!(reply.text(), r#"{"a":1}"#);
//!
//!     // A tool that cannot be used is left out, with the reason.
//!     assert!(registry.find("send").await.is_none());
//!     assert_eq!(registry.snapshot().refused()[0].name, "send");
//!     Ok(())
//! }
//! ```

mod client_snapshots;
mod fixed_source;
mod follow;
mod log;
mod look_alikes;
mod namespaces;
mod pins;
mod registry;
mod resolve;
mod snapshot;
mod spread;
mod store;

pub use bytes;
pub use semver;
pub use tokio::sync::watch;

pub use self::{
    fixed_source::FixedSource,
    pins::{
        InstalledKind, LockDrift, LockFile, LockFilePins, MemoryPins, Pin, PinKey, PinPolicy, PinSet, Pins,
        PinsError, StoredPins, WithheldDefinition, definition_changes,
    },
    registry::{OnDefinitionChange, Registry, RegistryParts},
    snapshot::{RefusedFeature, Snapshot},
    store::{
        Acceptance, AgentVersion, AuthoredVersion, Deprecation, IncompatibleVersion, InterfaceChange,
        InvalidVersionRequest, LatestChange, MemoryStore, NewVersion, OfferedTool, PublishError,
        PublishOptions, Published, Publisher, ReadManifest, SecretGrant, ServerRecord, Store, StoreChanges,
        StoreError, StoreOperation, StoreSource, StoredVersion, ToolAlias, ToolChange, ToolFile, ToolRecord,
        VersionHead, VersionRequest, VersionState, split_version,
    },
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
