//! What the example programs talk to.

pub mod weather;
