//! Sources of tools: their lists, states and updates.

mod lifecycle;
mod listing;
mod source;

pub use self::{
    lifecycle::{Lifecycle, SourceChange, SourceState},
    listing::{DefinitionPolicy, ListLimits, ListWarning, PinMode},
    source::{Catalogue, OnUpdate, RejectedEntry, Source, SourceStatus, Update},
};
