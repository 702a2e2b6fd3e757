//! Search by meaning: vectors of texts, and their fusion with the scores of words.

mod cache;
mod embedder;
mod vectors;

pub(crate) use self::vectors::{MIN_COSINE, fuse};
pub use self::{
    cache::VectorCache,
    embedder::{BoxedEmbedding, EmbedError, Embedder},
    vectors::ToolVectors,
};
