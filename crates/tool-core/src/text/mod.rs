//! Text forms of durations, days and points in time, and random pauses.

mod day;
mod duration;
mod jitter;
mod timestamp;

pub use self::{
    day::UtcDay,
    duration::{FormattedDuration, format_duration},
    jitter::Jitter,
    timestamp::rfc3339,
};
