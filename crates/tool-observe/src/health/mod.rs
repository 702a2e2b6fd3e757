//! Health of tools and upstreams, by a sliding window of their attempts.

mod latency_histogram;
mod tracker;
mod window;

pub use self::tracker::HealthTracker;
