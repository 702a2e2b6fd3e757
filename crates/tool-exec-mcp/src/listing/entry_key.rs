use std::{collections::HashSet, sync::Arc};

use tool_core::{Catalogue, Descriptor, Feature};

/// Identifies an entry of a server's list, by its name or URI at the server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct EntryKey {
    feature: Feature,
    upstream_name: String,
}

impl EntryKey {
    /// Returns the key of the entry that a descriptor was made from.
    pub(crate) fn from_descriptor(descriptor: &Descriptor) -> Self {
        let config = &descriptor.executor.config;
        let upstream_name = ["tool", "prompt", "uri"]
            .iter()
            .find_map(|key| config.get(key)?.as_str());
        Self {
            feature: descriptor.feature,
            upstream_name: upstream_name.unwrap_or_default().to_owned(),
        }
    }
}

/// Returns the keys of all entries of a catalogue.
pub(super) fn entry_keys(catalogue: &Catalogue) -> HashSet<EntryKey> {
    descriptors(catalogue)
        .map(|descriptor| EntryKey::from_descriptor(descriptor))
        .collect()
}

pub(super) fn descriptors(catalogue: &Catalogue) -> impl Iterator<Item = &Arc<Descriptor>> + Clone {
    catalogue.tools.iter().chain(&catalogue.others)
}
