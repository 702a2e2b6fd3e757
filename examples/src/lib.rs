//! Servers and clients that the example programs talk to.

pub mod visitor;
pub mod weather;
