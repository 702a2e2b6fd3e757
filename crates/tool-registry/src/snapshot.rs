use std::{collections::HashMap, sync::Arc};

use tool_core::{PrepareError, Tool};

/// All tools at one time, resolved. Immutable: a call that began with it ends with it.
#[derive(Debug, Default)]
pub struct Snapshot {
    pub(crate) revision: u64,
    pub(crate) tools: Vec<Arc<Tool>>,
    pub(crate) by_name: HashMap<Arc<str>, Arc<Tool>>,
    pub(crate) refused: Vec<Refused>,
    /// Which revision of each source went in, in the order of the sources.
    pub(crate) seen: Vec<u64>,
}

/// A tool that is not offered, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The source that has it.
    pub source: String,
    /// The tool's name.
    pub name: String,
    /// Why it is not offered.
    pub reason: String,
    /// The problems in its executor's settings, if it is those: a loader knows their lines.
    pub problems: Vec<PrepareError>,
}

impl Snapshot {
    /// Grows with every change.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The tools in the order of their names: the same list for everyone, every time.
    #[must_use]
    pub fn tools(&self) -> &[Arc<Tool>] {
        &self.tools
    }

    /// The tool of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Tool>> {
        self.by_name.get(name)
    }

    /// The tools that are not offered.
    #[must_use]
    pub fn refused(&self) -> &[Refused] {
        &self.refused
    }
}
