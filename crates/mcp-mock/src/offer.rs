use std::sync::Arc;

use mcp_wire::MirroredParams;
use mcp_wire::method;
use parking_lot::RwLock;
use raw_json::RawJson;

use crate::{MockPrompt, MockReply, MockResource, MockTool, item::Item, script::Script, template};

/// What the server offers at the moment.
#[derive(Debug, Default)]
pub(crate) struct Offer(RwLock<Vec<Arc<Entry>>>);

/// Something that is offered, and its script.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    pub(crate) key: String,
    pub(crate) listed: RawJson,
    pub(crate) completions: Vec<(String, Vec<String>)>,
    /// Which arguments modern clients mirror in headers.
    pub(crate) mirrored: Option<Arc<MirroredParams>>,
    pub(crate) script: Script,
}

/// What kind of thing an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Tool,
    Prompt,
    Resource,
    Template,
}

impl Kind {
    /// What is told to those who listen when the list has changed.
    pub(crate) fn list_changed(self) -> &'static str {
        match self {
            Self::Tool => method::TOOLS_LIST_CHANGED,
            Self::Prompt => method::PROMPTS_LIST_CHANGED,
            Self::Resource | Self::Template => method::RESOURCES_LIST_CHANGED,
        }
    }
}

impl Entry {
    fn new(kind: Kind, item: Item, completions: Vec<(String, Vec<String>)>) -> Self {
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

impl From<MockTool> for Entry {
    fn from(tool: MockTool) -> Self {
        Self::new(Kind::Tool, tool.0, Vec::new())
    }
}

impl From<MockPrompt> for Entry {
    fn from(prompt: MockPrompt) -> Self {
        Self::new(Kind::Prompt, prompt.item, prompt.completions)
    }
}

impl From<MockResource> for Entry {
    fn from(resource: MockResource) -> Self {
        let kind = match resource.is_template {
            true => Kind::Template,
            false => Kind::Resource,
        };
        Self::new(kind, resource.item, resource.completions)
    }
}

impl Offer {
    /// Adds an entry, in the place of the one with its key if there is one.
    pub(crate) fn put(&self, entry: Entry) {
        let mut entries = self.0.write();
        let place = entries
            .iter()
            .position(|old| old.kind == entry.kind && old.key == entry.key);
        match place {
            Some(index) => entries[index] = Arc::new(entry),
            None => entries.push(Arc::new(entry)),
        }
    }

    /// Takes entries with this key away; tells whether there were any.
    pub(crate) fn remove(&self, kinds: &[Kind], key: &str) -> bool {
        let mut entries = self.0.write();
        let before = entries.len();
        entries.retain(|entry| !kinds.contains(&entry.kind) || entry.key != key);
        entries.len() < before
    }

    /// Gives a tool another script, from its start; gives the replies back when there is no such tool.
    pub(crate) fn set_replies(&self, tool: &str, replies: Vec<MockReply>) -> Result<(), Vec<MockReply>> {
        let mut entries = self.0.write();
        let entry = entries
            .iter_mut()
            .find(|entry| entry.kind == Kind::Tool && entry.key == tool);
        match entry {
            Some(entry) => {
                *entry = Arc::new(entry.with_replies(replies));
                Ok(())
            }
            None => Err(replies),
        }
    }

    pub(crate) fn has(&self, kind: Kind) -> bool {
        self.entries().iter().any(|entry| entry.kind == kind)
    }

    pub(crate) fn find(&self, kind: Kind, key: &str) -> Option<Arc<Entry>> {
        self.entries()
            .into_iter()
            .find(|entry| entry.kind == kind && entry.key == key)
    }

    /// The resource with this URI, or the first template that it matches.
    pub(crate) fn resource(&self, uri: &str) -> Option<Arc<Entry>> {
        self.find(Kind::Resource, uri).or_else(|| {
            self.entries()
                .into_iter()
                .filter(|entry| entry.kind == Kind::Template)
                .find(|entry| template::matches(&entry.key, uri).is_some())
        })
    }

    /// How the entries of a kind are listed, in their order.
    pub(crate) fn listed(&self, kind: Kind) -> Vec<RawJson> {
        let entries = self.entries();
        let of_kind = entries.iter().filter(|entry| entry.kind == kind);
        of_kind.map(|entry| entry.listed.clone()).collect()
    }

    fn entries(&self) -> Vec<Arc<Entry>> {
        self.0.read().clone()
    }
}
