//! Builds of programs of the workspace, and the release build.

pub(crate) mod program;
pub(crate) mod release;
