use std::{collections::HashMap, sync::Arc, time::Duration};

use foldhash::fast::RandomState;

use crate::{CategoryKind, ToolDocument};

/// Properties of the tools by which results are filtered, ordered and grouped.
#[derive(Debug, Default)]
pub(crate) struct Facets {
    /// Numbers of the words, by kind.
    numbers: [HashMap<Arc<str>, u32, RandomState>; CategoryKind::ALL.len()],
    words: Vec<(CategoryKind, Arc<str>)>,
    /// Numbers of the words of all tools, one after the other.
    values: Vec<u32>,
    /// End of each tool's words.
    ends: Vec<u32>,
    /// Declared shares of successful calls and latencies, of the tools that have one.
    declared: HashMap<u32, (Option<f64>, Option<Duration>), RandomState>,
}

impl Facets {
    pub(super) fn add(&mut self, document: &ToolDocument) {
        let tool = u32::try_from(self.ends.len()).unwrap_or(u32::MAX);
        if let Some(server) = &document.server {
            self.push(CategoryKind::Server, server);
        }
        for (kind, words) in [
            (CategoryKind::Tag, &document.tags),
            (CategoryKind::Capability, &document.capabilities),
            (CategoryKind::Permission, &document.required_permissions),
        ] {
            words.iter().for_each(|word| self.push(kind, word));
        }
        self.ends
            .push(u32::try_from(self.values.len()).unwrap_or(u32::MAX));
        if document.sla.is_some() || document.latency.is_some() {
            self.declared.insert(tool, (document.sla, document.latency));
        }
    }

    fn push(&mut self, kind: CategoryKind, word: &str) {
        let number = self.number(kind, word).unwrap_or_else(|| {
            let number = u32::try_from(self.words.len()).unwrap_or(u32::MAX);
            let word: Arc<str> = word.into();
            self.numbers[kind as usize].insert(word.clone(), number);
            self.words.push((kind, word));
            number
        });
        let start = self.ends.last().map_or(0, |end| *end as usize);
        if !self.values[start..].contains(&number) {
            self.values.push(number);
        }
    }

    /// Returns the number of a word, or `None` if no tool has it.
    pub(crate) fn number(&self, kind: CategoryKind, word: &str) -> Option<u32> {
        self.numbers[kind as usize].get(word).copied()
    }

    /// Returns the word with this number.
    pub(crate) fn word(&self, number: u32) -> &(CategoryKind, Arc<str>) {
        &self.words[number as usize]
    }

    pub(crate) fn n_words(&self) -> usize {
        self.words.len()
    }

    /// Returns the numbers of a tool's words.
    pub(crate) fn of(&self, document: usize) -> &[u32] {
        let start = document.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.values[start as usize..self.ends[document] as usize]
    }

    pub(super) fn sla(&self, document: usize) -> Option<f64> {
        self.declared(document)?.0
    }

    pub(super) fn latency(&self, document: usize) -> Option<Duration> {
        self.declared(document)?.1
    }

    fn declared(&self, document: usize) -> Option<&(Option<f64>, Option<Duration>)> {
        self.declared.get(&u32::try_from(document).ok()?)
    }

    pub(super) fn size(&self) -> usize {
        let words: usize = self.words.iter().map(|(_, word)| word.len() + 64).sum();
        (self.values.capacity() + self.ends.capacity()) * size_of::<u32>()
            + self.declared.capacity() * 48
            + words
    }
}
