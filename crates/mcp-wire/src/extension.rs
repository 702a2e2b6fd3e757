//! Names of extensions, as both sides declare them under `extensions` of their capabilities.

/// Calls that go on as tasks (2026-07-28; before that, tasks are part of 2025-11-25).
pub const TASKS: &str = "io.modelcontextprotocol/tasks";
