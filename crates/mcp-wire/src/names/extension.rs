//! Names of extensions, which both sides declare under `extensions` in their capabilities.

/// Calls that go on as tasks (2026-07-28; before that revision, tasks are part of 2025-11-25).
pub const TASKS: &str = "io.modelcontextprotocol/tasks";
