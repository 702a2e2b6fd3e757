//! Tools whose calls go on as tasks, in the extension of the modern era.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use mcp_server::{Answer, InputRequired, RequestContext};
use mcp_wire::{Era, Request, RpcError, code, extension, method};
use parking_lot::Mutex;
use raw_json::RawJson;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::content::{failure, invalid, text};

/// All tools.
pub(crate) const TOOLS: [&str; 7] = [
    "greet",
    "slow_compute",
    "failing_job",
    "protocol_error_job",
    "confirm_delete",
    "multi_input",
    "test_tool_with_task",
];

/// Returns `true` if a tool can be called as a task only.
fn is_required(tool: &str) -> bool {
    matches!(tool, "failing_job" | "test_tool_with_task")
}

/// Tasks that were created. They are never removed: the program runs as long as one run of the suite.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Mutex<HashMap<String, Task>>);

#[derive(Debug)]
struct Task {
    made: Instant,
    /// Duration once the task has its input.
    takes: Duration,
    /// Result of the task.
    end: End,
    /// Unanswered questions, by their keys.
    open: BTreeMap<&'static str, Value>,
    is_cancelled: bool,
}

#[derive(Debug, Clone)]
enum End {
    Result(Value),
    Error(Value),
}

/// Time at which tasks were created and changed, which the suite does not check.
const THEN: &str = "2026-07-28T12:00:00Z";
/// Time for a client to observe that a task is working.
const WORK: Duration = Duration::from_secs(1);

impl Task {
    fn ending(takes: Duration, end: End) -> Self {
        Self {
            made: Instant::now(),
            takes,
            end,
            open: BTreeMap::new(),
            is_cancelled: false,
        }
    }

    fn asking(questions: &[(&'static str, &str)]) -> Self {
        let open = questions.iter().map(|(key, message)| (*key, question(message)));
        Self {
            open: open.collect(),
            ..Self::ending(Duration::ZERO, End::Result(said("It is done.")))
        }
    }

    fn is_over(&self) -> bool {
        self.is_cancelled || self.open.is_empty() && self.made.elapsed() >= self.takes
    }

    /// Returns the state of the task, with the members that belong to it.
    fn state(&self, id: &str) -> Value {
        let (status, more) = match &self.end {
            _ if self.is_cancelled => ("cancelled", None),
            _ if !self.open.is_empty() => ("input_required", Some(("inputRequests", json!(self.open)))),
            _ if !self.is_over() => ("working", None),
            End::Result(result) => ("completed", Some(("result", result.clone()))),
            End::Error(error) => ("failed", Some(("error", error.clone()))),
        };
        let mut state = json!({
            "taskId": id,
            "status": status,
            "createdAt": THEN,
            "lastUpdatedAt": THEN,
            "ttlMs": 600_000,
            "pollIntervalMs": 100,
        });
        if let Some((key, value)) = more {
            state[key] = value;
        }
        state
    }
}

/// Lists the tools.
pub(crate) fn list() -> impl Iterator<Item = Value> {
    TOOLS.iter().map(|name| {
        json!({"name": name, "description": "A tool for tests of tasks.", "inputSchema": {"type": "object"}})
    })
}

impl Tasks {
    /// Calls a tool: as a task if the client supports tasks.
    pub(crate) async fn call(
        &self,
        tool: &str,
        request: &Request,
        cx: &RequestContext,
    ) -> Result<Answer, RpcError> {
        let arguments = cx.arguments();
        let argument = |key: &str| arguments.and_then(|arguments| arguments.get(key));
        if tool == "greet" {
            let name = argument("name")
                .and_then(|name| name.string())
                .unwrap_or_default();
            return Ok(text(&format!("Hello, {name}!")));
        }
        let follows = cx.era() == Era::Modern && cx.check_extension(extension::TASKS).is_ok();
        if is_required(tool) && cx.era() == Era::Modern {
            cx.check_extension(extension::TASKS)?;
        }
        let task = match tool {
            "slow_compute" => {
                let seconds = argument("seconds").and_then(|seconds| seconds.to::<f64>().ok());
                let takes = Duration::try_from_secs_f64(seconds.unwrap_or(1.0)).unwrap_or(WORK);
                Task::ending(takes, End::Result(said("It is computed.")))
            }
            "failing_job" => {
                let mut result = said("The job failed.");
                result["isError"] = json!(true);
                Task::ending(WORK, End::Result(result))
            }
            "protocol_error_job" => {
                let error = json!({"code": code::INTERNAL_ERROR, "message": "The job went to pieces."});
                Task::ending(WORK / 4, End::Error(error))
            }
            "confirm_delete" => Task::asking(&[("confirm", "Delete it?")]),
            "multi_input" => Task::asking(&[("first", "Which?"), ("second", "How many?")]),
            _ => match cx.input_response("user_name") {
                Some(answer) => Task::ending(WORK / 4, End::Result(said(&format!("Of {answer}.")))),
                None => {
                    let params = question("What is your name?")["params"].take();
                    return InputRequired::new()
                        .ask("user_name", method::ELICITATION_CREATE, Some(params.into()))
                        .answer(request, cx);
                }
            },
        };
        if follows {
            let mut table = self.0.lock();
            let id = format!("task-{}", table.len() + 1);
            let mut made = task.state(&id);
            // The result is reported when the client asks for it.
            for key in ["result", "error", "inputRequests"] {
                made.as_object_mut().and_then(|made| made.remove(key));
            }
            made["resultType"] = json!("task");
            table.insert(id, task);
            return Ok(RawJson::from(made).into());
        }
        if !task.open.is_empty() {
            return Ok(failure("The tool needs answers, which only a task can be given."));
        }
        sleep(task.takes).await;
        match task.end {
            End::Result(result) => Ok(RawJson::from(result).into()),
            End::Error(error) => Err(RpcError::from_raw(&error.into())),
        }
    }

    /// Answers a request about a task.
    pub(crate) fn answer(&self, request: &Request, cx: &RequestContext) -> Result<Answer, RpcError> {
        cx.check_extension(extension::TASKS)?;
        let id = cx.task_id().unwrap_or_default();
        let mut table = self.0.lock();
        let task = table
            .get_mut(&*id)
            .ok_or_else(|| invalid(format!("there is no task `{id}`")))?;
        match &*request.method {
            method::TASKS_GET => return Ok(RawJson::from(task.state(&id)).into()),
            method::TASKS_CANCEL if !task.is_over() => task.is_cancelled = true,
            method::TASKS_UPDATE => {
                let given = cx.input_responses().into_iter().flat_map(RawJson::members);
                for (key, _) in given {
                    task.open.remove(&*key);
                }
            }
            _ => {}
        }
        Ok(RawJson::object().into())
    }
}

fn said(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn question(message: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"answer": {"type": "string"}}});
    let params = json!({"mode": "form", "message": message, "requestedSchema": schema});
    json!({"method": method::ELICITATION_CREATE, "params": params})
}
