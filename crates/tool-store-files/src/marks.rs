//! Revisions of documents.

use std::collections::{BTreeMap, BTreeSet};

use raw_json::hex;
use serde::{Deserialize, Serialize};

use crate::tree::Tree;

/// Document of the revisions. It belongs to this machine: version control has no use for it.
pub(crate) const MARKS: &str = ".toolplane/revisions.json";

/// Revision of the store, and that of each document with the digest that it had then.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Marks {
    pub(crate) revision: u64,
    pub(crate) aliases: Mark,
    pub(crate) servers: Mark,
    pub(crate) tools: BTreeMap<String, Mark>,
}

/// Revision in which a document last changed, and its digest then. No digest if it was removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    pub(crate) revision: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
}

impl Marks {
    /// Creates marks of which only the revision is known: everything counts as changed after it.
    pub(crate) fn lost(revision: u64) -> Self {
        Self {
            revision,
            ..Self::default()
        }
    }

    /// Marks each document that differs from its mark, or whose tool is named, with a new revision. Returns `true` if there is
    /// one.
    pub(crate) fn absorb(&mut self, tree: &Tree, named: &BTreeSet<String>) -> bool {
        let next = self.revision + 1;
        let mut is_changed = false;
        let mut look = |mark: &mut Mark, digest: Option<[u8; 32]>, is_named: bool| {
            let digest = digest.as_ref().map(|digest| hex(digest));
            if mark.digest != digest || is_named {
                *mark = Mark {
                    revision: next,
                    digest,
                };
                is_changed = true;
            }
        };
        for (name, part) in &tree.tools {
            match self.tools.get_mut(name) {
                Some(mark) => look(mark, Some(part.digest), named.contains(name)),
                None => look(
                    self.tools.entry(name.clone()).or_default(),
                    Some(part.digest),
                    false,
                ),
            }
        }
        for (name, mark) in &mut self.tools {
            if !tree.tools.contains_key(name) {
                look(mark, None, false);
            }
        }
        look(
            &mut self.aliases,
            tree.aliases.as_ref().map(|part| part.digest),
            false,
        );
        look(&mut self.servers, tree.servers_digest(), false);
        if is_changed {
            self.revision = next;
        }
        is_changed
    }

    /// Returns the revision of a tool; 0 if it was never seen.
    pub(crate) fn of_tool(&self, tool: &str) -> u64 {
        self.tools.get(tool).map_or(0, |mark| mark.revision)
    }
}
