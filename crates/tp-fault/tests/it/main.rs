//! Effects of each fault, over sockets and pipes.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ledger;
mod program;
mod proxy;
mod spelling;
mod stdio;
