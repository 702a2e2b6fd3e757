//! The prefixes of sources, each of which is a namespace: no other source can take a name in it.

use std::{collections::HashMap, sync::Arc};

use tool_core::Source;

/// The namespaces of all sources.
#[derive(Debug, Default)]
pub(crate) struct Namespaces {
    /// The source that each prefix belongs to: the first one, if several have it.
    owners: HashMap<String, String>,
    /// The prefix of each source.
    prefixes: HashMap<String, String>,
    /// The lengths of prefixes, longest first.
    lengths: Vec<usize>,
}

impl Namespaces {
    pub(crate) fn new(sources: &[Arc<dyn Source>]) -> Self {
        let mut namespaces = Self::default();
        for source in sources {
            let Some(prefix) = source.prefix().filter(|prefix| !prefix.is_empty()) else {
                continue;
            };
            let name = source.name().to_owned();
            namespaces.lengths.push(prefix.len());
            namespaces.prefixes.insert(name.clone(), prefix.clone());
            namespaces.owners.entry(prefix).or_insert(name);
        }
        namespaces.lengths.sort_unstable_by(|a, b| b.cmp(a));
        namespaces.lengths.dedup();
        namespaces
    }

    /// The prefix that a name begins with and the source that has it, if it is longer than the prefix of `source`, whose
    /// name it is to be.
    pub(crate) fn foreign(&self, source: &str, name: &str) -> Option<(&str, &str)> {
        let own = self.prefixes.get(source).map_or(0, String::len);
        let longer = self.lengths.iter().take_while(|length| **length > own);
        let mut prefixes = longer.filter_map(|length| self.owners.get_key_value(name.get(..*length)?));
        prefixes
            .find(|(_, owner)| *owner != source)
            .map(|(prefix, owner)| (prefix.as_str(), owner.as_str()))
    }
}
