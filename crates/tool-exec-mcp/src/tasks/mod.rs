//! Tasks of tools: followed here to their end, or handed to a caller that follows them.

mod progress;
mod protocol;
mod run_task;
mod task_backend;

pub(crate) use self::{
    protocol::{declare_extension, is_task_result, requires_tasks_extension, runs_tasks},
    run_task::run_task,
    task_backend::task_handle,
};
