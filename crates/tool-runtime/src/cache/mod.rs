//! Cache: keeps results; calls for the same result share one execution (single flight).

mod layer;
mod response_cache;
mod semantic;
mod settings;
mod sharing;
mod single_flight;

pub(crate) use self::settings::may_be_shared;
pub use self::{
    layer::{Cache, CacheLayer},
    semantic::SemanticCacheSettings,
    settings::{CacheCapacity, CacheScope, CacheSettings},
};
