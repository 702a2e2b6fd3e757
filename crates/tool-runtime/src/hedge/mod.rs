//! Hedge: sends a second attempt when the first is slow.

mod layer;

pub use self::layer::{Hedge, HedgeLayer};
