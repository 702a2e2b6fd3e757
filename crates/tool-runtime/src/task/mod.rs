//! Task: runs a tool that reports while it works in the background, for clients that support tasks.

mod layer;
mod reports;
mod runner;

pub use self::layer::{RunAsTask, TaskLayer};
