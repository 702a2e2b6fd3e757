//! Sections of a configuration: each layer reads its own settings from a file.
//!
//! A layer's crate defines the keys that it reads as a struct of [`Field`]s, the typed [setting](tool_core::Setting)
//! that they make, and a [`Section`] that connects both at each level that allows the keys. `tool-manifest` reads
//! files, passes each section its keys with their places, and knows no layer. The struct is also the source of the
//! JSON Schema and the documentation of the keys.

mod anchor;
mod document;
mod failure;
mod field;
mod keys;
mod members;
pub mod program;
mod read;
mod section;
mod section_entries;
mod sections;
mod setting_fields;
pub mod suggest;
mod values;

pub use raw_json::{self, RawJson};
pub use schemars;
pub use serde;
pub use tool_core;

pub use self::{
    document::{ConfigDocument, ConfigProblem, ConfigValue, NodeId, SectionContext, SectionKey},
    field::{Entries, Field, Raw, Text, WordOrMap},
    members::{NearestName, keep_readable, pointer},
    read::read,
    section::{ConfiguredTool, DeferredCheck, Section, SectionKeys, SectionLevel, ToolSettings},
    section_entries::SectionEntries,
    sections::Sections,
    setting_fields::{PlacedValue, SettingFields, kind_of},
    values::{
        ByteSize, NetworkHosts, Percent, Period, SandboxChoice, at_least_one, longer_than_zero, parsed,
        positive,
    },
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
