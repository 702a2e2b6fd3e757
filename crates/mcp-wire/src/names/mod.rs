//! Names that the protocol defines: methods, keys and headers.

pub mod extension;
pub mod header;
pub mod meta_key;
pub mod method;
pub mod param_key;
