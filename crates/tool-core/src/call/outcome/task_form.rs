use std::time::{Duration, SystemTime};

use raw_json::RawJson;
use serde_json::json;

use crate::{Reply, Task, TaskHandle, TaskMode, ToolError, rfc3339};

/// Writes the states of a task that we run ourselves, in the form that its client knows.
///
/// # Examples
/// ```
/// use std::{future::ready, sync::Arc, time::{Duration, SystemTime}};
/// use tool_core::{InProcess, Reply, Task, TaskForm, TaskMode, invoke_fn, serde_json::json};
///
/// let runner = invoke_fn(|_| ready(Ok::<_, tool_core::ToolError>(Reply::from(json!(1)))));
/// let task = Task::new("7", Arc::new(InProcess(runner)));
/// let form = TaskForm::new(&TaskMode::Allowed, SystemTime::UNIX_EPOCH, Duration::from_secs(60), Duration::from_secs(1));
/// let state = form.working(task, SystemTime::UNIX_EPOCH, Some("half of it"), (0, &[])).state;
/// assert_eq!(state.get("statusMessage").and_then(|message| message.string()).as_deref(), Some("half of it"));
/// ```
#[derive(Debug, Clone)]
pub struct TaskForm {
    is_extension: bool,
    created: SystemTime,
    ttl: Duration,
    poll_interval: Duration,
}

/// JSON-RPC code of a failed task (JSON-RPC 2.0, section 5.1).
const INTERNAL_ERROR: i32 = -32603;

impl TaskForm {
    /// Key in `_meta` of a task's state: what the tool has reported so far, as the list `pieces` of the last ones and the number
    /// `n` of all.
    pub const PARTIAL_KEY: &'static str = "dev.toolplane/partial";

    /// Creates the form for a call with this mode: [`TaskMode::Requested`] is of MCP 2025-11-25, [`TaskMode::Allowed`] of the
    /// extension `io.modelcontextprotocol/tasks`. `ttl` is the time for which the task can be asked for.
    #[must_use]
    pub fn new(mode: &TaskMode, created: SystemTime, ttl: Duration, poll_interval: Duration) -> Self {
        Self {
            is_extension: !matches!(mode, TaskMode::Requested(_)),
            created,
            ttl,
            poll_interval,
        }
    }

    /// Returns the answer to a call that has become this task.
    #[must_use]
    pub fn created(&self, task: Task) -> TaskHandle {
        let state = self.state(&task, "working", None, self.created);
        let state = match self.is_extension {
            true => with(&state, "resultType", RawJson::from("task")),
            false => RawJson::from_members(&[("task", state)]),
        };
        TaskHandle::new(task, state)
    }

    /// Returns the state of a task whose tool is at work, with a message for people. `partial` is the number of pieces that the
    /// tool has reported, and the last of them.
    #[must_use]
    pub fn working(
        &self,
        task: Task,
        now: SystemTime,
        message: Option<&str>,
        partial: (u64, &[RawJson]),
    ) -> TaskHandle {
        let mut state = self.state(&task, "working", message, now);
        let (n, pieces) = partial;
        if n > 0 {
            let partial = [("n", RawJson::from(n)), ("pieces", RawJson::from_items(pieces))];
            let meta = [(Self::PARTIAL_KEY, RawJson::from_members(&partial))];
            state = with(&state, "_meta", RawJson::from_members(&meta));
        }
        TaskHandle::new(task, state)
    }

    /// Returns the state of a cancelled task.
    #[must_use]
    pub fn cancelled(&self, task: Task, now: SystemTime) -> TaskHandle {
        let state = self.state(&task, "cancelled", None, now);
        TaskHandle::new(task, state)
    }

    /// Returns the state of a task that has ended. In the form of the extension it includes the result, or the error.
    #[must_use]
    pub fn ended(&self, task: Task, now: SystemTime, ended: &Result<Reply, ToolError>) -> TaskHandle {
        match ended {
            Ok(reply) => {
                let result = self.is_extension.then(|| reply.clone());
                let state = self.state(&task, "completed", None, now);
                TaskHandle::new(task, state).with_result(result)
            }
            Err(error) => {
                let text = format!("{}: {}", error.kind(), error.message());
                let state = self.state(&task, "failed", Some(&text), now);
                let details = RawJson::from(json!({"code": INTERNAL_ERROR, "message": text}));
                let state = match self.is_extension {
                    true => with(&state, "error", details),
                    false => state,
                };
                TaskHandle::new(task, state)
            }
        }
    }

    fn state(&self, task: &Task, status: &str, message: Option<&str>, now: SystemTime) -> RawJson {
        let (ttl, interval) = match self.is_extension {
            true => ("ttlMs", "pollIntervalMs"),
            false => ("ttl", "pollInterval"),
        };
        let mut members = vec![
            ("taskId", RawJson::from(&*task.id)),
            ("status", RawJson::from(status)),
            ("createdAt", RawJson::from(rfc3339(self.created).as_str())),
            ("lastUpdatedAt", RawJson::from(rfc3339(now).as_str())),
            (ttl, milliseconds(self.ttl)),
            (interval, milliseconds(self.poll_interval)),
        ];
        members.extend(message.map(|message| ("statusMessage", RawJson::from(message))));
        RawJson::from_members(&members)
    }
}

fn with(state: &RawJson, key: &str, value: RawJson) -> RawJson {
    state.with_members(&[(key, value)]).expect("a state is an object")
}

fn milliseconds(duration: Duration) -> RawJson {
    RawJson::from(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
