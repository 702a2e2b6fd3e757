//! Rate limit: limits attempts by time.

mod layer;
mod limiter;

pub use self::layer::{RateLimit, RateLimitLayer};
