use crate::ArgumentSettings;
use std::sync::Arc;

use serde_json::Value;
use tool_core::{
    Adapted, ArgumentHandling, Arguments, CallContext, Change, CheckError, ErrorKind, Event, Invoke, Layer,
    Outcome, Reply, Target, ToolError,
};

/// Refuses calls whose arguments do not fit the tool's input schema, or makes them fit first where the operator allows it.
/// Whoever calls is told of every change, with the reply or with the error.
#[derive(Debug, Clone, Copy, Default)]
pub struct ValidationLayer;

/// The layer of [`ValidationLayer`].
#[derive(Debug, Clone)]
pub struct Validation<S> {
    inner: S,
}

/// Refuses replies that do not fit the tool's output schema, if it declares one. A reply in which the tool itself
/// reports a failure passes: it carries no result.
#[derive(Debug, Clone, Copy, Default)]
pub struct ResultValidationLayer;

/// The layer of [`ResultValidationLayer`].
#[derive(Debug, Clone)]
pub struct ResultValidation<S> {
    inner: S,
}

impl<S> Layer<S> for ValidationLayer {
    type Invoke = Validation<S>;

    fn layer(self, inner: S) -> Validation<S> {
        Validation { inner }
    }
}

impl<S> Layer<S> for ResultValidationLayer {
    type Invoke = ResultValidation<S>;

    fn layer(self, inner: S) -> ResultValidation<S> {
        ResultValidation { inner }
    }
}

impl<S: Invoke> Invoke for Validation<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        // They were checked when the call that became the task was made.
        if matches!(cx.target, Target::Task { .. }) {
            return self.inner.invoke(cx).await;
        }
        let settings = settings(cx);
        let handling = settings.handling();
        let adapted = if handling == ArgumentHandling::Strict && !settings.fills_defaults() {
            None
        } else {
            adapt(cx, handling)?
        };
        // What was made to fit was checked then.
        if adapted.is_none()
            && let Err(error) = check(cx)
        {
            cx.explain("validate", || format!("refused: {}", masked(&error)));
            return Err(refusal(cx, &error));
        }
        cx.explain("validate", || "the arguments fit the input schema".to_owned());
        let Some(adapted) = adapted else {
            return self.inner.invoke(cx).await;
        };
        match self.inner.invoke(cx).await {
            Ok(mut outcome) => {
                if let Outcome::Reply(reply) = &mut outcome {
                    reply.add_meta(ArgumentHandling::META_KEY, adapted.report());
                }
                Ok(outcome)
            }
            Err(error) => {
                let message = format!("{} (before the call, {adapted})", error.message());
                Err(error.with_message(message))
            }
        }
    }
}

/// Checks the arguments of a call. Most fit and need no tree to tell, which costs more than the check.
fn check(cx: &CallContext) -> Result<(), CheckError> {
    check_arguments(cx, &cx.arguments)
}

fn check_arguments(cx: &CallContext, arguments: &Arguments) -> Result<(), CheckError> {
    let input = cx.tool().input();
    if input.surely_fits(arguments.raw()) {
        return Ok(());
    }
    input.check(arguments.value())
}

/// Makes the arguments fit, fills in defaults, and puts the result into the call; `None` if the arguments stay as they
/// are.
fn adapt(cx: &mut CallContext, handling: ArgumentHandling) -> Result<Option<Adapted>, ToolError> {
    let tool = cx.tool().clone();
    // Converting is for what does not fit; sanitizing takes away also from what does.
    let is_left = match handling {
        ArgumentHandling::Strict => true,
        ArgumentHandling::Coerce => check(cx).is_ok(),
        _ => false,
    };
    let converted = if is_left {
        None
    } else {
        tool.input().adapt(cx.arguments.raw(), handling)
    };
    let present = converted
        .as_ref()
        .map_or(cx.arguments.raw(), |adapted| &adapted.arguments);
    let filled = if settings(cx).fills_defaults() {
        tool.input().fill_defaults(present)
    } else {
        None
    };
    if let Some(filled) = filled {
        let arguments = Arguments::from_raw(filled.arguments.clone())?;
        if check_arguments(cx, &arguments).is_ok() {
            let before = converted.map_or_else(Vec::new, |adapted| adapted.changes);
            let changes = before.into_iter().chain(filled.changes).collect();
            return Ok(Some(put(cx, arguments, changes)));
        }
        cx.explain("validate", || {
            "defaults were not filled in: with them, the arguments would not fit".to_owned()
        });
    }
    let Some(adapted) = converted else {
        return Ok(None);
    };
    let arguments = Arguments::from_raw(adapted.arguments.clone())?;
    if let Err(error) = check_arguments(cx, &arguments) {
        cx.explain("validate", || {
            format!("refused, though {adapted}: {}", masked(&error))
        });
        return Err(refusal(cx, &error));
    }
    Ok(Some(put(cx, arguments, adapted.changes)))
}

/// Replaces the arguments of a call and tells observers of the changes.
fn put(cx: &mut CallContext, arguments: Arguments, changes: Vec<Change>) -> Adapted {
    let adapted = Adapted {
        arguments: arguments.raw().clone(),
        changes,
    };
    cx.explain("validate", || adapted.to_string());
    let told = Event::Adapted {
        cx,
        adapted: &adapted,
    };
    cx.observers.tell(&told);
    cx.arguments = Arc::new(arguments);
    adapted
}

fn refusal(cx: &CallContext, error: &CheckError) -> ToolError {
    let reason = match error {
        CheckError::Mismatch(_) => "arguments",
        _ => "schema",
    };
    cx.emit_refused("validate", reason);
    match error {
        CheckError::Mismatch(mismatch) => ToolError::new(
            ErrorKind::InvalidArguments,
            format!("the arguments do not fit: {mismatch}"),
        )
        .with_log_message(mismatch.masked()),
        _ => ToolError::new(
            ErrorKind::Protocol,
            format!("the tool's input schema is broken: {error}"),
        ),
    }
}

impl<S: Invoke> Invoke for ResultValidation<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let outcome = self.inner.invoke(cx).await?;
        let reply = match &outcome {
            Outcome::Reply(reply) => Some(reply),
            Outcome::Task(handle) => handle.result.as_ref(),
            _ => None,
        };
        if let Some(reply) = reply {
            check_size(cx, reply)?;
        }
        if let Some(reply) = reply.filter(|reply| !reply.is_error) {
            check_reply(cx, reply)?;
        }
        Ok(outcome)
    }
}

fn check_size(cx: &mut CallContext, reply: &Reply) -> Result<(), ToolError> {
    let n_bytes = reply.raw().len();
    let Some(limit) = cx
        .tool()
        .settings()
        .max_result_bytes
        .filter(|limit| n_bytes > *limit)
    else {
        return Ok(());
    };
    let message = format!(
        "the tool's result has {n_bytes} bytes, more than the {limit} of `defaults.max_result_bytes`"
    );
    cx.explain("validate result", || "refused: it is too large".to_owned());
    Err(ToolError::new(ErrorKind::ResultTooLarge, message))
}

fn check_reply(cx: &mut CallContext, reply: &Reply) -> Result<(), ToolError> {
    let tool = cx.tool().clone();
    let Some(output) = tool.output() else {
        cx.explain("validate result", || {
            "the tool declares no output schema".to_owned()
        });
        return Ok(());
    };
    let invalid = |message: String| ToolError::new(ErrorKind::ResultInvalid, message);
    let Some(structured) = reply.structured() else {
        cx.explain("validate result", || "refused: no structured content".to_owned());
        return Err(invalid(
            "the tool declares an output schema and sent no `structuredContent`".to_owned(),
        ));
    };
    let value: Value = structured
        .to()
        .map_err(|error| invalid(format!("the tool's result cannot be read: {error}")).with_source(error))?;
    match output.check(&value) {
        Ok(()) => {
            cx.explain("validate result", || {
                "the result fits the output schema".to_owned()
            });
            Ok(())
        }
        Err(error) => {
            cx.explain("validate result", || format!("refused: {}", masked(&error)));
            Err(invalid(format!(
                "the tool's result does not fit its output schema: {}",
                masked(&error)
            ))
            .with_source(error))
        }
    }
}

/// What may be said of a failed check where values must not appear.
fn masked(error: &CheckError) -> String {
    match error {
        CheckError::Mismatch(mismatch) => mismatch.masked(),
        other => other.to_string(),
    }
}

fn settings(cx: &CallContext) -> ArgumentSettings {
    let settings = cx.tool().settings().get::<ArgumentSettings>();
    settings.copied().unwrap_or_default()
}
