//! Timeout: ends one attempt at its time limit.

mod layer;
mod within;

pub use self::layer::{Timeout, TimeoutLayer};
pub(crate) use self::within::within;
