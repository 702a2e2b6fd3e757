//! What the programs talk to: the same as ours.

#[path = "../../src/weather.rs"]
pub mod weather;
