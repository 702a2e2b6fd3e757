use std::sync::Arc;

use crate::ToolDocument;

/// Names of the tools, and their lower-case names and aliases in alphabetical order.
#[derive(Debug, Default)]
pub(crate) struct Names {
    names: Vec<Arc<str>>,
    keys: Vec<(Arc<str>, u32)>,
}

impl Names {
    pub(super) fn add(&mut self, document: &ToolDocument) {
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let lower = document.name.to_lowercase();
        let lower = match *lower == *document.name {
            true => document.name.clone(),
            false => lower.into(),
        };
        self.names.push(document.name.clone());
        self.keys.push((lower, number));
        let aliases = document.aliases.iter().map(|alias| alias.to_lowercase().into());
        self.keys.extend(aliases.map(|alias| (alias, number)));
    }

    pub(super) fn finish(mut self) -> Self {
        self.keys.sort_unstable();
        self.keys.shrink_to_fit();
        self.names.shrink_to_fit();
        self
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn name(&self, document: usize) -> &Arc<str> {
        &self.names[document]
    }

    /// Returns the tools with a name or alias that begins with this lower-case text, and for each `true` if it is the whole
    /// name.
    pub(crate) fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (u32, bool)> + 'a {
        let start = self.keys.partition_point(|(key, _)| **key < *prefix);
        let keys = self.keys[start..]
            .iter()
            .take_while(move |(key, _)| key.starts_with(prefix));
        keys.map(move |(key, document)| (*document, key.len() == prefix.len()))
    }

    pub(super) fn size(&self) -> usize {
        let owned = self
            .keys
            .iter()
            .filter(|(key, number)| !Arc::ptr_eq(key, &self.names[*number as usize]));
        let owned: usize = owned.map(|(key, _)| key.len() + 2 * size_of::<usize>()).sum();
        self.names.capacity() * size_of::<Arc<str>>()
            + self.keys.capacity() * size_of::<(Arc<str>, u32)>()
            + owned
    }
}
