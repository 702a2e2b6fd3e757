use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};

use crate::NodeId;

/// The keys of sections that a map has: a field of this type, named as an anchor such as `$tool`, is the place of sections
/// among its other fields.
#[derive(Debug, Clone, Default)]
pub struct SectionEntries(pub(crate) Vec<(String, NodeId)>);

impl SectionEntries {
    /// Returns the place of a key, in our spelling, if it is given.
    #[must_use]
    pub fn place(&self, key: &str) -> Option<NodeId> {
        let (_, at) = self.0.iter().find(|(name, _)| name == key)?;
        Some(*at)
    }
}

impl<'de> Deserialize<'de> for SectionEntries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = SectionEntries;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("keys of sections")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, at)) = map.next_entry()? {
            entries.push((key, NodeId::new(at)));
        }
        Ok(SectionEntries(entries))
    }
}

impl JsonSchema for SectionEntries {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Sections".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!(true)
    }
}
