//! Tests of the stream transport, and of servers over the standard streams of a process.

#[cfg(feature = "stdio")]
pub(crate) mod processes;
#[cfg(feature = "stdio")]
mod spawners;
pub(crate) mod writing;
