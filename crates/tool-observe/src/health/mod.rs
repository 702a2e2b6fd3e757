//! Health of tools and upstreams, by a sliding window of their attempts.

mod tracker;
mod window;

pub use self::tracker::HealthTracker;
