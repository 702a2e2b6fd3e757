//! Tests of servers over the standard streams of a process.

pub(crate) mod processes;
pub(crate) mod writing;
