//! Text forms of durations and points in time, and random pauses.

mod duration;
mod jitter;
mod timestamp;

pub use self::{
    duration::{FormattedDuration, format_duration},
    jitter::Jitter,
    timestamp::rfc3339,
};
