//! Embeddings by a BERT model in a local directory: no service, no network, no C library.
//!
//! [`LocalEmbedder`] is an [`Embedder`](tool_core::Embedder) for searches and semantic caches. It runs sentence-transformers
//! models of the BERT architecture with mean pooling, such as all-MiniLM-L6-v2, on the CPU.
//!
//! # Examples
//! ```no_run
//! use tool_embed::LocalEmbedder;
//! use tool_core::Embedder;
//!
//! # async fn example() -> Result<(), tool_core::EmbedError> {
//! let embedder = LocalEmbedder::new("models/all-MiniLM-L6-v2");
//! let vectors = embedder.embed(&["the weather at a place".to_owned()]).await?;
//! # Ok(())
//! # }
//! ```

mod embedder;
mod model;

pub use tool_core;

pub use self::embedder::LocalEmbedder;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
