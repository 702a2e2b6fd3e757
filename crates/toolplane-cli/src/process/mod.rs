//! The process itself: runtimes, signals, logs and memory.

pub(crate) mod logging;
pub(crate) mod memory;
pub(crate) mod runtime;
