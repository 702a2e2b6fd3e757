//! Tests of the sandbox with real processes.

mod basics;
mod support;
