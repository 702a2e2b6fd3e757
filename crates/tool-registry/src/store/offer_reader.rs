//! Descriptors of stored versions.

use std::{collections::BTreeMap, panic::resume_unwind, sync::Arc, thread::available_parallelism};

use raw_json::RawJson;
use semver::Version;
use serde_json::json;
use tokio::{runtime::Handle, task::JoinHandle};
use tool_core::{Descriptor, Origin, SecretUse};

use super::{AgentVersion, OfferedTool, ReadManifest, StoredVersion, ToolFile, VersionState};

/// Minimum number of tools that are read in a task of their own.
const MIN_PER_TASK: usize = 500;

/// Tool of a store, and what was made of its latest version. `None` if it is not offered.
pub(super) type ReadOffer = (Arc<str>, Option<Result<Arc<Descriptor>, String>>);

/// Reader of versions as what agents see.
#[derive(Clone)]
pub(super) struct OfferReader {
    manifests: Arc<dyn ReadManifest>,
    /// Name of the store, for messages.
    store: Arc<str>,
    /// Shared by the running tasks, which it counts.
    running: Arc<()>,
}

/// Tools that are being read.
pub(super) enum PendingOffers {
    Read(Vec<ReadOffer>),
    Running(JoinHandle<Vec<ReadOffer>>),
}

impl OfferReader {
    pub(super) fn new(manifests: Arc<dyn ReadManifest>, store: &str) -> Self {
        Self {
            manifests,
            store: store.into(),
            running: Arc::default(),
        }
    }

    /// Reads tools. Many are read while the caller continues, unless one task for each core is running: documents that wait would
    /// only take memory.
    pub(super) fn start(&self, tools: Vec<OfferedTool>) -> PendingOffers {
        let n_cores = available_parallelism().map_or(1, usize::from);
        let is_busy = Arc::strong_count(&self.running) > n_cores;
        let runtime = Handle::try_current().ok();
        match runtime.filter(|_| tools.len() >= MIN_PER_TASK && !is_busy) {
            Some(runtime) => {
                let reader = self.clone();
                PendingOffers::Running(runtime.spawn_blocking(move || reader.read(tools)))
            }
            None => PendingOffers::Read(self.read(tools)),
        }
    }

    fn read(&self, tools: Vec<OfferedTool>) -> Vec<ReadOffer> {
        let read = tools.into_iter().map(|tool| {
            let descriptor = match (tool.problem, tool.latest) {
                (Some(problem), _) => Some(Err(problem)),
                (None, latest) => latest.map(|stored| self.descriptor(&tool.name, &stored)),
            };
            (tool.name, descriptor.map(|read| read.map(Arc::new)))
        });
        read.collect()
    }

    /// Reads a version as what agents see.
    pub(super) fn descriptor(&self, tool: &str, stored: &StoredVersion) -> Result<Descriptor, String> {
        let mut descriptor = self.manifests.read(tool, &stored.manifest)?;
        complete(
            &mut descriptor,
            (&self.store, tool),
            &stored.head.version,
            &stored.files,
        );
        if let Some(agent) = &stored.head.agent {
            descriptor.origin = agent_origin(&descriptor, agent, &stored.head.digest);
        }
        let notice = match &stored.head.state {
            VersionState::Deprecated(deprecation) => Some(deprecation.sentence()),
            VersionState::Yanked { reason } => Some(format!("Withdrawn: {reason}.")),
            _ => None,
        };
        if let Some(notice) = notice {
            let separator = if descriptor.description.is_empty() {
                ""
            } else {
                " "
            };
            descriptor.description = format!("{}{separator}{notice}", descriptor.description.trim_end());
            descriptor.definition = Some(definition(&descriptor, &stored.head.state));
        }
        Ok(descriptor)
    }
}

/// Completes the descriptor of a manifest with what its version adds.
pub(super) fn complete(
    descriptor: &mut Descriptor,
    (store, tool): (&str, &str),
    version: &Version,
    files: &BTreeMap<String, ToolFile>,
) {
    let version = version.to_string();
    descriptor.origin = Origin::stored(format!("{store}: {tool}@{version}"));
    let files = files.iter();
    descriptor.files = files
        .map(|(path, file)| (path.clone(), file.content.clone()))
        .collect();
    descriptor.version = Some(version);
}

/// Returns the origin of a version that an agent made. Grants for another digest do not count.
pub(super) fn agent_origin(descriptor: &Descriptor, agent: &AgentVersion, digest: &[u8; 32]) -> Origin {
    let grants = agent.grants.iter().filter(|grant| grant.digest == *digest);
    let granted = grants.map(|grant| SecretUse::new(&*grant.secret, &*grant.field, &*grant.destination));
    let origin = Origin::agent(&*descriptor.origin.place, agent.accepted.is_some());
    origin.with_granted(granted.collect())
}

impl PendingOffers {
    /// Waits until all tools are read.
    pub(super) async fn finish(self) -> Vec<ReadOffer> {
        match self {
            Self::Read(read) => read,
            Self::Running(task) => match task.await {
                Ok(read) => read,
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => resume_unwind(panic),
                    // The runtime ends: nobody sees the tools.
                    Err(_) => Vec::new(),
                },
            },
        }
    }
}

/// Returns the definition of a tool with a notice about its version in `_meta`.
fn definition(descriptor: &Descriptor, state: &VersionState) -> RawJson {
    let details = match state {
        VersionState::Deprecated(deprecation) => json!({
            "state": "deprecated",
            "replacement": deprecation.replacement,
            "until": deprecation.until,
            "reason": deprecation.reason,
        }),
        VersionState::Yanked { reason } => json!({"state": "yanked", "reason": reason}),
        state => json!({"state": state.as_str()}),
    };
    let meta =
        RawJson::from(json!({"dev.toolplane/version": descriptor.version, "dev.toolplane/state": details}));
    let members = [
        ("name", Some(RawJson::from(&*descriptor.name))),
        ("title", descriptor.title.as_deref().map(RawJson::from)),
        ("description", Some(RawJson::from(&*descriptor.description))),
        ("inputSchema", Some(descriptor.input_schema.clone())),
        ("outputSchema", descriptor.output_schema.clone()),
        ("_meta", Some(meta)),
    ];
    let members = members.into_iter().filter_map(|(key, value)| Some((key, value?)));
    RawJson::from_members(&members.collect::<Vec<_>>())
}
