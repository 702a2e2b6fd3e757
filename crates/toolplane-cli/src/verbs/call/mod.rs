mod arguments;
mod explain;
mod result;
pub(super) mod schema;

use std::{
    fs::File,
    io::{self, Read},
    sync::Arc,
    time::Duration,
};

use serde_json::Value;
use tokio::time::Instant;
use toolplane::{
    CallRequest, IdleRule, RawJson, Toolplane,
    core::{Arguments, ErrorKind, LayerDecision, Outcome, Preview, Progress, Tool, ToolError},
    policy::ApprovalVerdict,
};

use super::on_plane_with;
use crate::{
    command::{Call, Format, Options},
    error::CliError,
    exit::Exit,
    output::{Console, text},
};

/// Maximum size of the arguments, in bytes: the same as of a request body.
const MAX_ARGUMENTS: u64 = 4 << 20;

pub(crate) fn run(options: &Options, call: &Call, console: Console) -> Result<Exit, CliError> {
    run_with(options, call, |_| {}, console)
}

/// Makes a call. `made` sees its result before it is shown.
pub(super) fn run_with(
    options: &Options,
    call: &Call,
    made: impl Fn(&Result<Outcome, ToolError>),
    console: Console,
) -> Result<Exit, CliError> {
    // Read before anything starts, so that no server waits for typed input.
    let whole = call.json.as_deref().map(read_arguments).transpose()?;
    let chaos = super::chaos(call.chaos.as_deref(), console)?;
    on_plane_with(chaos, options, console, async |_, plane| {
        let start = Instant::now();
        let arguments = match whole {
            Some(arguments) => arguments,
            None => Arguments::parse(typed(plane, call).await?)?,
        };
        let mut request = CallRequest::new(call.tool.as_str()).arguments(arguments);
        if let Some(timeout) = call.timeout {
            // Finding the tool may have started its server; that time counts.
            request = request.deadline(timeout.saturating_sub(start.elapsed()));
        }
        if let Some(key) = &call.idempotency_key {
            request = request.idempotency_key(key.as_str());
        }
        if call.no_cache {
            request = request.bypass_cache();
        }
        if console.is_interactive() {
            request = request.progress(Arc::new(ProgressPrinter(console)));
        }
        let made = make(plane, call, request, &made, console).await;
        for rule in plane.idle_rules() {
            if rule.setting == IdleRule::CHAOS {
                console.warn(&rule.to_string());
            }
        }
        made
    })
}

/// Returns the arguments as JSON, typed by the tool's schema.
async fn typed(plane: &Toolplane, call: &Call) -> Result<String, CliError> {
    match find_tool(plane, call).await {
        Ok(tool) => {
            let hint = format!("`toolplane tools show {}` shows its arguments", call.tool);
            let schema = tool.descriptor().input_schema.to().unwrap_or_default();
            arguments::parse(&call.arguments, &schema).map_err(|failure| failure.with_hint_if_none(hint))
        }
        // The caller may lack the permission to see the tool; the call itself names the rule that forbids it.
        Err(error) if error.kind() == ErrorKind::NotFound => {
            arguments::parse(&call.arguments, &Value::Null).map_err(|_| error.into())
        }
        Err(error) => Err(error.into()),
    }
}

/// Finds the tool within the time limit, which includes a start of its server.
async fn find_tool(plane: &Toolplane, call: &Call) -> Result<Arc<Tool>, ToolError> {
    let caller = plane.local_caller();
    let find_tool = plane.tool(&call.tool, &caller);
    let Some(timeout) = call.timeout else {
        return find_tool.await;
    };
    tokio::time::timeout(timeout, find_tool)
        .await
        .unwrap_or_else(|_| {
            let message = format!(
                "the server of `{}` did not start within {}",
                call.tool,
                text::time(timeout)
            );
            Err(ToolError::new(ErrorKind::Timeout, message))
        })
}

async fn make(
    plane: &Toolplane,
    call: &Call,
    request: CallRequest,
    made: &impl Fn(&Result<Outcome, ToolError>),
    console: Console,
) -> Result<Exit, CliError> {
    let (result, notes) = if call.dry_run {
        let explained = plane.dry_run(request).await;
        (explained.result, Some(explained.decisions))
    } else {
        let mut ended = once(plane, call, request.clone()).await;
        let mut request = request;
        if call.approve
            && let Ok(Outcome::Pending(pending)) = &ended.0
            && !pending.is_at_work()
        {
            approve(plane, &pending.handle).await?;
            request = request.approval(&pending.handle);
            ended = once(plane, call, request.clone()).await;
        }
        // Nobody else can get the result of work that this process has begun.
        while call.timeout.is_none() && is_at_work(&ended.0) {
            ended = once(plane, call, request.clone()).await;
        }
        made(&ended.0);
        ended
    };
    match (result, notes) {
        (Ok(outcome), Some(notes)) if call.dry_run => {
            let preview = match &outcome {
                Outcome::Pending(pending) => pending.detail.as_ref().and_then(Preview::from_json),
                _ => None,
            };
            explain::dry_run(&notes, preview.as_ref(), console)?;
            Ok(Exit::Done)
        }
        (Ok(outcome), notes) => finished(&outcome, notes.as_deref(), console),
        (Err(error), notes) => Err(failed(&call.tool, error, notes.as_deref(), console)),
    }
}

/// Result of a call, and the decisions of the layers for `--explain`.
type ExplainedResult = (Result<Outcome, ToolError>, Option<Vec<LayerDecision>>);

async fn once(plane: &Toolplane, call: &Call, request: CallRequest) -> ExplainedResult {
    if call.explain {
        let explained = plane.call_explained(request).await;
        (explained.result, Some(explained.decisions))
    } else {
        (plane.call(request).await, None)
    }
}

/// Returns `true` if the tool goes on to work after the call.
fn is_at_work(result: &Result<Outcome, ToolError>) -> bool {
    matches!(result, Ok(Outcome::Pending(pending)) if pending.is_at_work())
}

/// Approves the user's own call. A rule may require another person.
async fn approve(plane: &Toolplane, handle: &str) -> Result<(), CliError> {
    let by = &plane.local_caller().principal;
    let decided = plane
        .approvals()
        .decide(handle, ApprovalVerdict::Approve, by)
        .await;
    decided.map(|_| ()).map_err(|error| {
        CliError::new(Exit::Denied, "denied", "the call cannot be approved here").with_source(&error)
    })
}

fn finished(outcome: &Outcome, notes: Option<&[LayerDecision]>, console: Console) -> Result<Exit, CliError> {
    let reply = match outcome {
        Outcome::Reply(reply) => reply,
        Outcome::Pending(pending) if pending.is_at_work() => {
            let failure = unfinished("the tool is still at work, and its result will be lost");
            return Err(failure.with_hint("without `--timeout`, the call waits for it"));
        }
        Outcome::Pending(pending) => {
            let failure = unfinished(&format!(
                "it waits for {}, as `{}`",
                pending.reason, pending.handle
            ));
            // Only a gateway keeps pending calls where others can reach them.
            return Err(failure.with_hint("`--approve` approves it, unless another person must"));
        }
        Outcome::NeedsInput(_) => return Err(unfinished("the tool asks for input")),
        _ => return Err(unfinished("the tool continues as a task")),
    };
    result::print(reply, notes, console)?;
    Ok(if reply.is_error { Exit::Failed } else { Exit::Done })
}

fn unfinished(why: &str) -> CliError {
    CliError::new(
        Exit::Pending,
        "pending",
        format!("the call is not finished: {why}"),
    )
}

fn failed(tool: &str, error: ToolError, notes: Option<&[LayerDecision]>, console: Console) -> CliError {
    let is_unfit = error.kind() == ErrorKind::InvalidArguments;
    let mut failure = CliError::from(error);
    if is_unfit {
        failure = failure.with_hint(format!("`toolplane tools show {tool}` shows its arguments"));
    }
    if let Some(notes) = notes {
        if console.format == Format::Json {
            failure.details.explain = Some(explain::json(notes));
        } else {
            console.stderr(&explain::table(notes));
        }
    }
    failure
}

/// Reads all arguments at once: the text itself, `@FILE`, or `-` for stdin.
fn read_arguments(source: &str) -> Result<Arguments, CliError> {
    let text = match source.strip_prefix('@') {
        Some(path) => {
            let file = File::open(path);
            file.and_then(read_limited)
                .map_err(|error| CliError::usage(format!("cannot read `{path}`")).with_source(&error))?
        }
        None if source == "-" => read_limited(io::stdin().lock())
            .map_err(|error| CliError::usage("cannot read the arguments from stdin").with_source(&error))?,
        None => source.to_owned(),
    };
    if text.len() as u64 > MAX_ARGUMENTS {
        return Err(CliError::usage(format!(
            "the arguments have more than {MAX_ARGUMENTS} bytes"
        )));
    }
    Ok(Arguments::parse(text)?)
}

fn read_limited(source: impl Read) -> io::Result<String> {
    let mut text = String::new();
    source.take(MAX_ARGUMENTS + 1).read_to_string(&mut text)?;
    Ok(text)
}

/// Prints a tool's progress.
struct ProgressPrinter(Console);

impl Progress for ProgressPrinter {
    fn report(&self, report: RawJson) {
        let number = |key: &str| report.get(key).map(|value| value.to_string());
        let message = report
            .get("message")
            .and_then(|message| message.string())
            .unwrap_or_default();
        let of = number("total")
            .map(|total| format!("/{total}"))
            .unwrap_or_default();
        let done = number("progress").unwrap_or_default();
        self.0
            .say(text::line(&format!("progress: {done}{of} {message}")).trim_end());
    }
}

/// Returns the time between two decisions.
fn elapsed(note: &LayerDecision, first: &LayerDecision) -> Duration {
    note.at.since(first.at)
}

#[cfg(test)]
mod tests {
    use toolplane::core::{CallContext, InProcess, InputRequest, Invoke, PendingCall, Task, TaskHandle};

    use super::*;
    use crate::command::{Cli, command};

    /// A task that never reports anything.
    struct Never;

    impl Invoke for Never {
        async fn invoke(&self, _: &mut CallContext) -> Result<Outcome, ToolError> {
            std::future::pending().await
        }
    }

    #[test]
    fn what_is_not_finished_is_pending() {
        let arguments = command().get_matches_from(["toolplane", "version"]);
        let cli: Cli = clap::FromArgMatches::from_arg_matches(&arguments).unwrap();
        let console = Console::new(&cli.options);
        let (requests, state) = (RawJson::object(), RawJson::object());
        let task = Task::new("t1", Arc::new(InProcess(Never)));
        for outcome in [
            Outcome::Pending(Box::new(PendingCall::new("a1", "an approval"))),
            Outcome::NeedsInput(Box::new(InputRequest::new(requests))),
            Outcome::Task(Box::new(TaskHandle::new(task, state))),
        ] {
            let failure = finished(&outcome, None, console).unwrap_err();
            assert_eq!((failure.exit, failure.kind), (Exit::Pending, "pending"));
        }
    }
}
