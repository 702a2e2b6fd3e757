//! Namespaces: the prefix of a source reserves all names that begin with it.

use std::{collections::HashMap, sync::Arc};

use foldhash::fast::RandomState;
use tool_core::{Source, outward_name};

/// Namespaces of all sources.
#[derive(Debug, Default)]
pub(crate) struct Namespaces {
    /// Source that owns each prefix: the first one, if several have it.
    owners: HashMap<String, String, RandomState>,
    /// Prefix of each source.
    prefixes: HashMap<String, String, RandomState>,
    /// Lengths of prefixes, longest first.
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

    /// Returns the names that a name stands for if a single `_` joins its prefix, as in `files_read` for `files__read`.
    pub(crate) fn expand(&self, name: &str) -> Vec<String> {
        let prefixes = self.owners.keys().filter(|prefix| prefix.ends_with("__"));
        let mut expanded: Vec<String> = prefixes
            .filter(|prefix| !name.starts_with(prefix.as_str()))
            .filter_map(|prefix| {
                let own = name.strip_prefix(&prefix[..prefix.len() - 1])?;
                (!own.is_empty()).then(|| outward_name(&format!("{prefix}{own}")))
            })
            .collect();
        expanded.sort_unstable();
        expanded
    }

    /// Returns the name with a single `_` behind its prefix, if it begins with a prefix that ends with `__`.
    pub(crate) fn contract(&self, name: &str) -> Option<String> {
        let prefixes = self.owners.keys().filter(|prefix| prefix.ends_with("__"));
        let prefix = prefixes
            .filter(|prefix| name.starts_with(prefix.as_str()))
            .max_by_key(|prefix| prefix.len())?;
        Some(format!(
            "{}{}",
            &prefix[..prefix.len() - 1],
            &name[prefix.len()..]
        ))
    }

    /// Returns the namespace of another source that the name of a tool of `source` belongs to, as its prefix and its owner.
    /// A longer prefix has precedence over that of `source`.
    pub(crate) fn find_foreign(&self, source: &str, name: &str) -> Option<(&str, &str)> {
        let own = self.prefixes.get(source).map_or(0, String::len);
        let longer = self.lengths.iter().take_while(|length| **length > own);
        let mut prefixes = longer.filter_map(|length| self.owners.get_key_value(name.get(..*length)?));
        prefixes
            .find(|(_, owner)| *owner != source)
            .map(|(prefix, owner)| (prefix.as_str(), owner.as_str()))
    }
}
