//! Sources of tools: their lists, states and updates.

mod definition_change;
mod lifecycle;
mod listing;
mod source;

pub use self::{
    definition_change::{DefinitionChange, DefinitionState, FieldChange},
    lifecycle::{Lifecycle, SourceChange, SourceState},
    listing::{DefinitionPolicy, ListLimits, ListWarning, PinMode},
    source::{Catalogue, OnUpdate, RejectedEntry, Source, SourceStatus, Update},
};
