//! Servers and clients that the programs talk to: the same as ours.

#[path = "../../src/visitor.rs"]
pub mod visitor;
#[path = "../../src/weather.rs"]
pub mod weather;
