use std::{collections::HashSet, sync::Arc};

use tool_core::{Catalogue, Descriptor, Feature};

/// An entry of a server's list, by the server's own name for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct EntryKey {
    feature: Feature,
    own: String,
}

impl EntryKey {
    /// The entry that a descriptor stands for.
    pub(crate) fn from_descriptor(descriptor: &Descriptor) -> Self {
        let config = &descriptor.executor.config;
        let own = ["tool", "prompt", "uri"]
            .iter()
            .find_map(|key| config.get(key)?.as_str());
        Self {
            feature: descriptor.feature,
            own: own.unwrap_or_default().to_owned(),
        }
    }
}

/// The entries of a catalogue.
pub(super) fn entry_keys(catalogue: &Catalogue) -> HashSet<EntryKey> {
    descriptors(catalogue)
        .map(|known| EntryKey::from_descriptor(known))
        .collect()
}

pub(super) fn descriptors(catalogue: &Catalogue) -> impl Iterator<Item = &Arc<Descriptor>> + Clone {
    catalogue.tools.iter().chain(&catalogue.others)
}
