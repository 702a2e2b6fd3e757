use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value};
use tool_core::Overrides;

use crate::{ConfigDocument, Section, SectionEntries, SectionKey, SectionKeys, SectionLevel, ToolSettings};

/// All sections that a configuration may have.
///
/// # Examples
/// ```
/// use tool_settings::{Section, Sections};
///
/// let sections = Sections::new(vec![Section::new()]);
/// assert!(sections.keys("$tool").is_some_and(<[_]>::is_empty));
/// ```
#[derive(Debug)]
pub struct Sections {
    sections: Vec<Section>,
    anchors: Vec<(&'static str, Vec<SectionKey>)>,
}

/// The places of sections among the other keys of a map: the first group of each level, and the later ones.
const ANCHORS: [[&str; 2]; 4] = [
    ["$server", "$server-late"],
    ["$defaults", "$defaults-late"],
    ["$policy", "$policy-late"],
    ["$tool", "$tool-late"],
];

impl Sections {
    /// These sections, in this order in messages and in the JSON Schema.
    #[must_use]
    pub fn new(sections: Vec<Section>) -> Self {
        let mut all = Self {
            sections,
            anchors: Vec::new(),
        };
        let anchors = ANCHORS.iter().flatten();
        all.anchors = anchors
            .map(|anchor| {
                (
                    *anchor,
                    all.listed(anchor).flat_map(|part| part.keys).copied().collect(),
                )
            })
            .collect();
        all
    }

    /// Returns the keys at an anchor; `None` if there is no such anchor.
    #[must_use]
    pub fn keys(&self, anchor: &str) -> Option<&[SectionKey]> {
        let (_, keys) = self.anchors.iter().find(|(name, _)| *name == anchor)?;
        Some(keys)
    }

    /// Returns the schemas of the keys at an anchor; `None` if there is no such anchor.
    #[must_use]
    pub fn properties(&self, anchor: &str, generator: &mut SchemaGenerator) -> Option<Map<String, Value>> {
        self.keys(anchor)?;
        let mut properties = Map::new();
        for part in self.listed(anchor) {
            let mut schema = (part.schema)(generator);
            if let Some(Value::Object(own)) = schema.remove("properties") {
                properties.extend(own);
            }
        }
        Some(properties)
    }

    /// Returns the settings that each tool has.
    #[must_use]
    pub fn always(&self) -> Overrides {
        let mut all = Overrides::default();
        for section in &self.sections {
            all.merge(&section.always);
        }
        all
    }

    /// Returns the key that people mean by a word, such as `breaker` by `circuitbreaker`.
    #[must_use]
    pub fn suggested(&self, word: &str) -> Option<&'static str> {
        let mut words = self.sections.iter().flat_map(|section| &section.words);
        words.find(|(known, _)| *known == word).map(|(_, key)| *key)
    }

    /// Reads the sections of a tool.
    pub fn read_tool(
        &self,
        document: &dyn ConfigDocument,
        entries: &[&SectionEntries],
        tool: &mut ToolSettings,
    ) {
        for keys in self.sections.iter().filter_map(|section| section.tool.as_ref()) {
            keys.read(document, entries, tool);
        }
    }

    /// Reads the sections of another level.
    pub fn read(
        &self,
        level: SectionLevel,
        document: &dyn ConfigDocument,
        entries: &[&SectionEntries],
        overrides: &mut Overrides,
    ) {
        for section in &self.sections {
            if let Some(keys) = &section.levels[level as usize] {
                keys.read(document, entries, overrides);
            }
        }
    }

    /// The parts of sections at an anchor, in the order of their groups.
    fn listed(&self, anchor: &str) -> impl Iterator<Item = Listed<'_>> {
        let level = ANCHORS.iter().position(|names| names.contains(&anchor));
        let is_late = level.is_some_and(|level| ANCHORS[level][1] == anchor);
        let parts = self.sections.iter().filter_map(|section| match level? {
            3 => section.tool.as_ref().map(Listed::new),
            level => section.levels[level].as_ref().map(Listed::new),
        });
        let mut parts: Vec<_> = parts.filter(|part| (part.group > 0) == is_late).collect();
        parts.sort_by_key(|part| part.group);
        parts.into_iter()
    }
}

impl Default for Sections {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

struct Listed<'a> {
    keys: &'a [SectionKey],
    group: u8,
    schema: fn(&mut SchemaGenerator) -> Schema,
}

impl<'a> Listed<'a> {
    fn new<S>(keys: &'a SectionKeys<S>) -> Self {
        Self {
            keys: &keys.keys,
            group: keys.group,
            schema: keys.schema,
        }
    }
}
