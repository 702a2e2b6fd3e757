use std::sync::Arc;

use mcp_wire::MirroredParams;
use mcp_wire::method;
use parking_lot::RwLock;
use raw_json::RawJson;

use crate::{
    MockPrompt, MockReply, MockResource, MockTool,
    reply::{script::Script, template},
    server::features::ListedFeature,
};

/// The currently offered features.
#[derive(Debug, Default)]
pub(crate) struct Catalog(RwLock<Vec<Arc<CatalogEntry>>>);

/// An offered feature with its script.
#[derive(Debug)]
pub(crate) struct CatalogEntry {
    pub(crate) kind: FeatureKind,
    pub(crate) key: String,
    pub(crate) listed: RawJson,
    pub(crate) completions: Vec<(String, Vec<String>)>,
    /// Arguments that modern clients mirror in headers.
    pub(crate) mirrored: Option<Arc<MirroredParams>>,
    pub(crate) script: Script,
}

/// Kind of a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FeatureKind {
    Tool,
    Prompt,
    Resource,
    Template,
}

impl FeatureKind {
    /// Returns the notification for a change of the list.
    pub(crate) fn list_changed(self) -> &'static str {
        match self {
            Self::Tool => method::TOOLS_LIST_CHANGED,
            Self::Prompt => method::PROMPTS_LIST_CHANGED,
            Self::Resource | Self::Template => method::RESOURCES_LIST_CHANGED,
        }
    }
}

impl CatalogEntry {
    fn new(kind: FeatureKind, item: ListedFeature, completions: Vec<(String, Vec<String>)>) -> Self {
        let schema = item.listed.get("inputSchema");
        Self {
            kind,
            mirrored: schema.map(|schema| Arc::new(MirroredParams::from_schema(&schema))),
            key: item.key,
            listed: item.listed,
            completions,
            script: Script::new(item.replies),
        }
    }

    fn with_replies(&self, replies: Vec<MockReply>) -> Self {
        Self {
            kind: self.kind,
            key: self.key.clone(),
            listed: self.listed.clone(),
            completions: self.completions.clone(),
            mirrored: self.mirrored.clone(),
            script: Script::new(replies),
        }
    }
}

impl From<MockTool> for CatalogEntry {
    fn from(tool: MockTool) -> Self {
        Self::new(FeatureKind::Tool, tool.0, Vec::new())
    }
}

impl From<MockPrompt> for CatalogEntry {
    fn from(prompt: MockPrompt) -> Self {
        Self::new(FeatureKind::Prompt, prompt.item, prompt.completions)
    }
}

impl From<MockResource> for CatalogEntry {
    fn from(resource: MockResource) -> Self {
        let kind = match resource.is_template {
            true => FeatureKind::Template,
            false => FeatureKind::Resource,
        };
        Self::new(kind, resource.item, resource.completions)
    }
}

impl Catalog {
    /// Adds an entry, or replaces the one with its key.
    pub(crate) fn put(&self, entry: CatalogEntry) {
        let mut entries = self.0.write();
        let place = entries
            .iter()
            .position(|old| old.kind == entry.kind && old.key == entry.key);
        match place {
            Some(index) => entries[index] = Arc::new(entry),
            None => entries.push(Arc::new(entry)),
        }
    }

    /// Removes entries with this key. Returns `true` if there were any.
    pub(crate) fn remove(&self, kinds: &[FeatureKind], key: &str) -> bool {
        let mut entries = self.0.write();
        let before = entries.len();
        entries.retain(|entry| !kinds.contains(&entry.kind) || entry.key != key);
        entries.len() < before
    }

    /// Gives a tool another script, from its start. Returns the replies if there is no such tool.
    pub(crate) fn set_replies(&self, tool: &str, replies: Vec<MockReply>) -> Result<(), Vec<MockReply>> {
        let mut entries = self.0.write();
        let entry = entries
            .iter_mut()
            .find(|entry| entry.kind == FeatureKind::Tool && entry.key == tool);
        match entry {
            Some(entry) => {
                *entry = Arc::new(entry.with_replies(replies));
                Ok(())
            }
            None => Err(replies),
        }
    }

    pub(crate) fn has(&self, kind: FeatureKind) -> bool {
        self.entries().iter().any(|entry| entry.kind == kind)
    }

    pub(crate) fn find(&self, kind: FeatureKind, key: &str) -> Option<Arc<CatalogEntry>> {
        self.entries()
            .into_iter()
            .find(|entry| entry.kind == kind && entry.key == key)
    }

    /// Returns the resource with this URI, or the first template that it matches.
    pub(crate) fn resource(&self, uri: &str) -> Option<Arc<CatalogEntry>> {
        self.find(FeatureKind::Resource, uri).or_else(|| {
            self.entries()
                .into_iter()
                .filter(|entry| entry.kind == FeatureKind::Template)
                .find(|entry| template::matches(&entry.key, uri).is_some())
        })
    }

    /// Returns the list entries of a kind, in their order.
    pub(crate) fn listed(&self, kind: FeatureKind) -> Vec<RawJson> {
        let entries = self.entries();
        let of_kind = entries.iter().filter(|entry| entry.kind == kind);
        of_kind.map(|entry| entry.listed.clone()).collect()
    }

    fn entries(&self) -> Vec<Arc<CatalogEntry>> {
        self.0.read().clone()
    }
}
