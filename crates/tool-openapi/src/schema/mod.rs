//! Schemas of a document as JSON Schema 2020-12.

mod annotations;
mod definitions;
mod kinds;
mod normalize;

pub(crate) use self::{
    annotations::remove_annotations,
    definitions::Definitions,
    kinds::{Kinds, restrict},
};
