//! Tasks on the wire: as in revision 2025-11-25, and as the extension of the modern era.

use std::time::Duration;

use mcp_client::{ClientError, RequestOptions, ServerInfo};
use mcp_wire::{Era, code, extension};
use raw_json::{JsonKind, RawJson};

use crate::errors::cut;

/// Poll interval if the server does not say one.
const DEFAULT_PAUSE: Duration = Duration::from_millis(500);
const MIN_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// Time before the end of a call at which a task is polled once more.
const FINAL_POLL_LEAD: Duration = Duration::from_secs(1);

/// State of a task, as its server says it.
pub(crate) struct TaskState {
    pub(crate) status: String,
    pub(crate) message: Option<RawJson>,
    /// Poll interval.
    pub(crate) pause: Duration,
}

impl TaskState {
    pub(crate) fn read(task: &RawJson) -> Self {
        let pause = task.get("pollIntervalMs").or_else(|| task.get("pollInterval"));
        let pause = pause
            .and_then(|interval| interval.to::<f64>().ok())
            .and_then(|interval| Duration::try_from_secs_f64(interval / 1000.0).ok());
        Self {
            status: task
                .get("status")
                .and_then(|status| status.string())
                .unwrap_or_default(),
            message: task
                .get("statusMessage")
                .filter(|message| message.kind() == JsonKind::String),
            pause: pause.unwrap_or(DEFAULT_PAUSE).clamp(MIN_PAUSE, MAX_PAUSE),
        }
    }

    pub(crate) fn with_message(&self, what: &str) -> String {
        match self.message.as_ref().and_then(RawJson::string) {
            Some(message) => format!("{what}: {}", cut(&message)),
            None => what.to_owned(),
        }
    }
}

/// Returns the pause before the next poll of a task whose call has `left` time: the server's interval, but not beyond
/// the time in which the answer is of use.
pub(crate) fn pause_within(interval: Duration, left: Option<Duration>) -> Duration {
    let Some(left) = left else { return interval };
    interval.min(left.saturating_sub(FINAL_POLL_LEAD).max(DEFAULT_PAUSE))
}

/// Returns the id of a task.
pub(crate) fn id(task: &RawJson) -> Option<RawJson> {
    task.get("taskId").filter(|id| id.kind() == JsonKind::String)
}

/// Returns the params of a request about a task.
pub(crate) fn params(id: &RawJson) -> RawJson {
    RawJson::from_members(&[("taskId", id.clone())])
}

/// Returns `true` if a server runs calls of tools as tasks.
pub(crate) fn runs_tasks(server: &ServerInfo) -> bool {
    let path: &[&str] = match server.era() {
        Era::Legacy => &["tasks", "requests", "tools", "call"],
        Era::Modern => &["extensions", extension::TASKS],
    };
    let mut offers = server.capabilities.parts();
    path.iter()
        .all(|wanted| match offers.find(|(key, _)| key == wanted) {
            Some((_, found)) => {
                offers = found.parts();
                true
            }
            None => false,
        })
}

/// Returns `true` if a server can be asked to cancel a task.
pub(crate) fn cancels_tasks(server: &ServerInfo) -> bool {
    let tasks = server.capabilities.get("tasks");
    server.era() == Era::Modern || tasks.is_some_and(|tasks| tasks.get("cancel").is_some())
}

/// Declares to a modern server, with a request, that the client supports tasks.
pub(crate) fn declare_extension(options: &mut RequestOptions) {
    let capabilities = options.capabilities.take().unwrap_or(RawJson::object());
    let extensions = capabilities.get("extensions").unwrap_or(RawJson::object());
    let extensions = extensions.with_members(&[(extension::TASKS, RawJson::object())]);
    let declared = extensions.and_then(|extensions| capabilities.with_members(&[("extensions", extensions)]));
    options.capabilities = Some(declared.expect("capabilities are objects"));
}

/// Returns `true` if a modern server refuses a call because it runs the tool as a task only. Such a call did not run.
pub(crate) fn requires_tasks_extension(error: &ClientError) -> bool {
    // Servers from before the release use this number for the error.
    const BEFORE: i64 = -32003;
    let Some(error) = error.as_rpc() else { return false };
    let path = ["requiredCapabilities", "extensions", extension::TASKS];
    matches!(error.code, code::MISSING_CLIENT_CAPABILITY | BEFORE)
        && error.data.as_ref().is_some_and(|data| {
            path.iter()
                .try_fold(data.clone(), |required, key| required.get(key))
                .is_some()
        })
}

/// Returns `true` if a modern server has made a call a task.
pub(crate) fn is_task_result(result: &RawJson) -> bool {
    result
        .get("resultType")
        .is_some_and(|kind| kind.as_str() == "\"task\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_polled_at_its_servers_interval() {
        for (task, expected) in [
            ("{}", 500),
            (r#"{"pollInterval":1}"#, 50),
            (r#"{"pollInterval":30000}"#, 30_000),
            (r#"{"pollIntervalMs":12000}"#, 12_000),
            (r#"{"pollIntervalMs":9e9}"#, 60_000),
        ] {
            let task = RawJson::parse(task).expect("it is JSON");
            assert_eq!(
                TaskState::read(&task).pause,
                Duration::from_millis(expected),
                "{task}"
            );
        }
    }

    #[test]
    fn a_task_is_polled_before_the_time_of_its_call_is_over() {
        let seconds = Duration::from_secs_f64;
        for (interval, left, expected) in [
            (20.0, None, 20.0),
            (20.0, Some(60.0), 20.0),
            (20.0, Some(15.0), 14.0),
            (20.0, Some(1.2), 0.5),
            (0.1, Some(1.2), 0.1),
        ] {
            let pause = pause_within(seconds(interval), left.map(seconds));
            assert_eq!(pause, seconds(expected), "{interval} {left:?}");
        }
    }
}
