use serde::de;

use crate::{NodeId, SectionKey, failure::Failure};

/// All names that a map may have, in the order of its fields, with those of sections where their anchor stands.
pub(crate) fn names(fields: &[&'static str], anchors: &[Anchor<'_>]) -> Vec<&'static str> {
    let mut known = Vec::with_capacity(fields.len() + 16);
    for field in fields {
        match anchors.iter().find(|anchor| anchor.name == *field) {
            Some(anchor) => known.extend(anchor.keys.iter().map(|key| key.name)),
            None => known.push(*field),
        }
    }
    known
}

/// The place of sections among the fields of a map, and those of their keys that are given.
pub(crate) struct Anchor<'a> {
    pub(crate) name: &'static str,
    pub(crate) keys: &'a [SectionKey],
    pub(crate) given: Vec<(&'static str, u32)>,
}

impl Anchor<'_> {
    pub(crate) fn key(&mut self, written: &str) -> Option<(&mut Self, &'static str)> {
        let key = self.keys.iter().find(|key| key.name == written)?.key;
        Some((self, key))
    }

    pub(crate) fn give(&mut self, key: &'static str, at: NodeId) -> Result<(), Failure> {
        if self.given.iter().any(|(known, _)| *known == key) {
            return Err(de::Error::duplicate_field(key));
        }
        self.given.push((key, at.index()));
        Ok(())
    }
}
