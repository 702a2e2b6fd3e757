//! Rate limit: limits attempts by time.

mod layer;
mod limiter;
mod settings;

pub use self::{
    layer::{RateLimit, RateLimitLayer},
    settings::RateLimits,
};
