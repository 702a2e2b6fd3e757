//! Tests of the sandbox with real processes.

mod basics;
mod escapes;
mod network;
mod support;
mod users;
