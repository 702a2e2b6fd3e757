use raw_json::{JsonKind, RawJson};
use serde::Deserialize;
use serde_json::{Value, json};
use tool_core::{ErrorKind, ToolError};
use tool_sandbox::SandboxExit;

use super::Failed;
use crate::{
    ScriptLanguage,
    settings::{ScriptOutput, ScriptStream},
};

/// Mark of the outcome of a Python function in standard output.
pub(super) const MARK: u8 = 0x1e;

/// An exception of Python.
#[derive(Debug, Deserialize)]
struct Exception {
    #[serde(rename = "type")]
    kind: String,
    message: String,
    traceback: Vec<Frame>,
}

/// A line of the tool's own code in a traceback.
#[derive(Debug, Deserialize)]
struct Frame {
    file: String,
    line: u64,
    function: String,
    text: String,
}

/// Returns the result of a run that ended in this way with this standard output.
pub(crate) fn reply(failed: &Failed<'_>, exit: SandboxExit, stdout: &[u8]) -> Result<RawJson, ToolError> {
    if failed.plan.language == ScriptLanguage::Python
        && matches!(exit, SandboxExit::Code(_))
        && let Some(outcome) = outcome(stdout)
    {
        return function_result(failed, exit, &outcome);
    }
    if failed.plan.output == ScriptOutput::Process
        && let SandboxExit::Code(code) = exit
        && !failed.plan.exit_codes.has(code)
    {
        let stdout = text(failed, stdout)?;
        return Ok(RawJson::from(json!({"stdout": stdout, "exit_code": code})));
    }
    if !exit.is_success() {
        return Err(failed.ended(exit));
    }
    if failed.plan.is_stateless {
        let message = "the function `run` wrote its result in a form that is not known".to_owned();
        return Err(failed.error(ErrorKind::Protocol, message, []));
    }
    if failed.plan.stream == Some(ScriptStream::Ndjson) {
        return values(failed, stdout);
    }
    let result = failed.plan.output.format().read(stdout);
    result.map_err(|reason| failed.error(ErrorKind::Protocol, format!("what the code {reason}"), []))
}

fn text<'a>(failed: &Failed<'_>, stdout: &'a [u8]) -> Result<&'a str, ToolError> {
    std::str::from_utf8(stdout).map_err(|_| {
        let message = "what the code wrote to standard output is no UTF-8 text".to_owned();
        failed.error(ErrorKind::Protocol, message, [])
    })
}

/// Returns the values of lines of JSON, as a list.
fn values(failed: &Failed<'_>, stdout: &[u8]) -> Result<RawJson, ToolError> {
    let mut values = Vec::new();
    for (index, line) in stdout.split(|byte| *byte == b'\n').enumerate() {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let value = RawJson::parse(line.to_vec()).map_err(|error| {
            let message = format!("line {} of what the code wrote is no JSON: {error}", index + 1);
            failed.error(ErrorKind::Protocol, message, [])
        })?;
        values.push(value);
    }
    Ok(RawJson::from_items(&values))
}

/// Returns the outcome that stands at the end of standard output.
fn outcome(stdout: &[u8]) -> Option<RawJson> {
    let at = stdout.iter().rposition(|byte| *byte == MARK)?;
    let outcome = RawJson::parse(stdout[at + 1..].to_vec()).ok()?;
    (outcome.kind() == JsonKind::Object).then_some(outcome)
}

fn function_result(failed: &Failed<'_>, exit: SandboxExit, outcome: &RawJson) -> Result<RawJson, ToolError> {
    if let Some(result) = outcome.get("result").filter(|_| exit.is_success()) {
        return Ok(result);
    }
    let text = |key: &str| outcome.get(key).and_then(|value| value.string());
    let error = |kind, message| Err(failed.error(kind, message, []));
    if let Some(exception) = outcome.get("exception") {
        return Err(exception_error(failed, &exception));
    }
    if let Some(reason) = text("arguments") {
        return error(
            ErrorKind::InvalidArguments,
            format!("the arguments do not fit: {reason}"),
        );
    }
    if let Some(reason) = text("no_json") {
        let message = format!("the result of `run` cannot be written as JSON: {reason}");
        return error(ErrorKind::Protocol, message);
    }
    if outcome.get("no_function").is_some() {
        let message = "the code declares no function `run`, which `stateless: true` needs".to_owned();
        return error(ErrorKind::Protocol, message);
    }
    match exit {
        SandboxExit::Code(0) => error(
            ErrorKind::Protocol,
            "the code ended before `run` returned a result".to_owned(),
        ),
        exit => Err(failed.ended(exit)),
    }
}

/// Returns the error of an exception: its type, its message, and the lines of the tool's own code.
fn exception_error(failed: &Failed<'_>, exception: &RawJson) -> ToolError {
    let read = serde_json::from_str::<Exception>(exception.as_str());
    let Ok(read) = read else {
        let message = "the code failed in a form that is not known".to_owned();
        return failed.error(ErrorKind::Protocol, message, []);
    };
    if read.kind == "MemoryError" {
        return failed.out_of_memory();
    }
    let mut message = format!("the code failed with {}", read.kind);
    if !read.message.is_empty() {
        message.push_str(&format!(": {}", read.message));
    }
    for frame in &read.traceback {
        message.push_str(&format!(
            "\n  {}:{}, in {}",
            frame.file, frame.line, frame.function
        ));
        if !frame.text.is_empty() {
            message.push_str(&format!(": {}", frame.text));
        }
    }
    let lines = read.traceback.iter().map(|frame| {
        json!({"file": frame.file, "line": frame.line, "function": frame.function, "text": frame.text})
    });
    let lines: Vec<Value> = lines.collect();
    let hidden = |text: &str| Value::from(failed.secrets.hide_in_text(text));
    failed.error(
        ErrorKind::UpstreamError,
        message,
        [
            ("exception", Value::from(read.kind.as_str())),
            ("exception_message", hidden(&read.message)),
            ("traceback", Value::from(lines)),
        ],
    )
}
