//! Cache: keeps results; calls for the same result share one execution (single flight).

mod layer;
mod response_cache;
mod sharing;
mod single_flight;

pub use self::layer::{Cache, CacheLayer};
