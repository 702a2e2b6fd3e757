//! Sources of tools, their lists and their life cycle.

mod lifecycle;
mod listing;
mod source;

pub use self::{
    lifecycle::{Lifecycle, SourceChange, SourceState},
    listing::{DefinitionPolicy, ListLimits, ListWarning},
    source::{Catalogue, OnUpdate, RejectedEntry, Source, SourceStatus, Update},
};
