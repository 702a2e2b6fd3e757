//! Tools in other versions than those that the snapshot lists.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use tool_core::{Descriptor, ErrorKind, Feature, Reach, Source, Tool, ToolError, Trust};

use super::{Registry, ResolveReason};
use crate::{RefusedFeature, StoreSource, VersionRequest, resolve::Resolver};

/// Maximum number of tools that are kept.
const MAX_KEPT: usize = 4096;

/// Tools by their name and the requested version.
#[derive(Debug, Default)]
pub(crate) struct VersionedTools(Mutex<HashMap<(String, String), KeptTool>>);

/// Tool, and the revision of the snapshot for which it was made.
type KeptTool = (u64, Arc<Tool>);

impl VersionedTools {
    fn get(&self, name: &str, version: &str) -> Option<KeptTool> {
        let key = (name.to_owned(), version.to_owned());
        self.0.lock().get(&key).cloned()
    }

    fn keep(&self, name: &str, version: &str, revision: u64, tool: &Arc<Tool>) {
        let mut kept = self.0.lock();
        if kept.len() >= MAX_KEPT {
            kept.retain(|_, (of, _)| *of == revision);
        }
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert((name.to_owned(), version.to_owned()), (revision, tool.clone()));
    }
}

impl Registry {
    /// Returns a tool in a version that is known to be valid, without reading any source: the fast path of
    /// [`Registry::find_version`].
    #[must_use]
    pub fn get_version(&self, name: &str, version: &str) -> Option<Arc<Tool>> {
        let (revision, tool) = self.0.versioned.get(name, version)?;
        (revision == self.0.snapshot.load().revision).then_some(tool)
    }

    /// Returns a tool in the requested version: `version` is what follows `@` in `tool@version`, see [`VersionRequest`].
    /// Several versions of a tool exist side by side, and each has a state of its own.
    ///
    /// The source that offers a tool of this name answers. A tool that a source lists in one version only is found if that
    /// version satisfies the request.
    ///
    /// # Cancellation
    /// As for [`Registry::find`].
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArguments`] if `version` is no request, [`ErrorKind::NotFound`] if there is no such version, and
    /// [`ErrorKind::Unavailable`] if the source does not work or the version cannot be used.
    pub async fn find_version(&self, name: &str, version: &str) -> Result<Arc<Tool>, ToolError> {
        if let Some(tool) = self.get_version(name, version) {
            return Ok(tool);
        }
        let request: VersionRequest = version.parse().map_err(|error: crate::InvalidVersionRequest| {
            ToolError::new(ErrorKind::InvalidArguments, error.to_string())
        })?;
        let listed = self.find(name).await;
        if request == VersionRequest::Latest
            && let Some(listed) = &listed
        {
            return Ok(listed.clone());
        }
        // The revision before the source is read: a change meanwhile makes the result outdated.
        let revision = self.snapshot().revision;
        let sources = match &listed {
            Some(listed) => self.find_source(listed).into_iter().collect(),
            None => self.sources(),
        };
        for source in &sources {
            // An alias has one version: that of its target.
            let is_alias = listed
                .as_ref()
                .is_some_and(|tool| !tool.descriptor().policy_names.is_empty());
            let found = if is_alias {
                None
            } else {
                source.version(name, version).await?
            };
            if let Some(descriptor) = found {
                return self.versioned(name, version, revision, source, &descriptor);
            }
        }
        let satisfies = |tool: &&Arc<Tool>| {
            let written = tool.descriptor().version.as_deref();
            written.is_some_and(|written| request.matches_text(written))
        };
        match listed.as_ref().filter(satisfies) {
            Some(listed) => Ok(listed.clone()),
            None => Err(missing(name, version, listed.as_deref())),
        }
    }

    /// Checks that a tool which no source offers yet could be offered: its name, its schemas, and the settings that its
    /// executor reads. Changes nothing.
    ///
    /// # Errors
    /// If it could not, with the reason.
    pub fn check(&self, tool: &Descriptor) -> Result<(), RefusedFeature> {
        self.with_resolver(|resolver| resolver.prepare(&tool.origin.place, tool).map(drop))
    }

    /// Makes a tool that no source offers, such as a draft that is to be tested. It is not kept.
    ///
    /// # Errors
    /// If it cannot be used, with the reason.
    pub fn make_tool(&self, tool: &Arc<Descriptor>) -> Result<Arc<Tool>, RefusedFeature> {
        self.with_resolver(|resolver| resolver.new_tool(&tool.origin.place, tool, None))
    }

    /// Runs a function with a resolver of tools that no source offers.
    fn with_resolver<T>(&self, run: impl FnOnce(&Resolver<'_>) -> T) -> T {
        let parts = self.0.parts.load_full();
        let snapshot = self.snapshot();
        let is_renamed = |source: &str, name: &str| parts.is_renamed(source, name);
        run(&Self::resolver(
            &self.0,
            &parts,
            &snapshot,
            ResolveReason::Sources,
            &is_renamed,
        ))
    }

    /// Returns the reach of a tool; `None` if there is no executor of its kind here.
    #[must_use]
    pub fn reach(&self, tool: &Descriptor) -> Option<Reach> {
        let parts = self.0.parts.load();
        let executor = parts.executors.get(&tool.executor.kind)?;
        Some(executor.reach(tool))
    }

    /// Returns the source whose namespace a new name of a tool in the store would belong to, with the prefix.
    #[must_use]
    pub fn namespace_of(&self, name: &str) -> Option<(String, String)> {
        let parts = self.0.parts.load();
        let (prefix, owner) = parts.namespaces.find_foreign(StoreSource::NAME, name)?;
        Some((owner.to_owned(), prefix.to_owned()))
    }

    fn versioned(
        &self,
        name: &str,
        version: &str,
        revision: u64,
        source: &Arc<dyn Source>,
        descriptor: &Arc<Descriptor>,
    ) -> Result<Arc<Tool>, ToolError> {
        let shared = &*self.0;
        let snapshot = shared.snapshot.load_full();
        let is_listed = |tool: &&Arc<Tool>| tool.descriptor().version == descriptor.version;
        let tool = match snapshot.find(Feature::Tool, name).filter(is_listed) {
            Some(listed) => listed.clone(),
            None => {
                let parts = shared.parts.load_full();
                let is_renamed = |source: &str, name: &str| parts.is_renamed(source, name);
                let resolver = Self::resolver(shared, &parts, &snapshot, ResolveReason::Sources, &is_renamed);
                let known = shared.versioned.get(name, version);
                let before = known.map(|(_, tool)| tool).filter(|tool| is_listed(&tool));
                let made = resolver.new_tool(source.name(), descriptor, before.as_ref());
                made.map_err(|refused| {
                    let message = format!("`{name}@{version}` cannot be used: {}", refused.reason);
                    ToolError::new(ErrorKind::Unavailable, message).with_no_retry()
                })?
            }
        };
        shared.versioned.keep(name, version, revision, &tool);
        Ok(tool)
    }
}

/// Returns the error for a version that does not exist.
fn missing(name: &str, version: &str, listed: Option<&Tool>) -> ToolError {
    let message = match listed.map(Tool::descriptor) {
        None => format!("there is no tool `{name}` with a version `{version}`"),
        Some(listed) => match &listed.version {
            Some(known) => format!("`{name}` has no version `{version}`; its version is `{known}`"),
            None if listed.origin.trust == Trust::Upstream => {
                format!("`{name}` has no versions: its server lists it without one")
            }
            None => format!("`{name}` has no version: give it one in its definition"),
        },
    };
    ToolError::new(ErrorKind::NotFound, message)
}
