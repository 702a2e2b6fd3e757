//! Semantic cache: results of calls whose arguments mean the same in other words.

mod cache;
mod index;
mod settings;
mod tokens;
mod wording;
mod words;

pub use self::settings::SemanticCacheSettings;
pub(super) use self::{
    cache::SemanticCache,
    index::{Nearest, Request},
    settings::{LocatedSemantics, SemanticBody, read},
};

#[cfg(test)]
mod tests;
