//! Schemas of a document as JSON Schema 2020-12.

mod definitions;
mod kinds;
mod normalize;

pub(crate) use self::{
    definitions::Definitions,
    kinds::{Kinds, restrict},
};
