use std::sync::Arc;

use tool_core::{
    AdaptedArguments, ArgumentHandling, Arguments, CallContext, Change, CheckError, ErrorKind, Event, Invoke,
    Layer, NamedLayer, Outcome, Target, ToolError,
};

use super::{ArgumentSettings, masked};

/// Refuses calls whose arguments do not satisfy the tool's input schema, or coerces them first where the operator allows it.
/// The reply or the error tells the caller of every change.
///
/// Acts on every call, by the schema of the tool: see [`ToolBuilder::input`](tool_core::ToolBuilder::input). A tool without one
/// accepts anything. [`ArgumentSettings`] in the `Settings` of the tool permit coercion.
///
/// # Examples
/// ```
/// use tool_core::{Arguments, CallContext, ErrorKind, Invoke, Layer, RawJson, TargetBackend, Tool, ToolError};
/// use tool_core::{invoke_fn, serde_json::json};
/// use tool_policy::ValidationLayer;
/// use tool_schema::LazySchema;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), ToolError> {
/// let weather = Tool::builder("weather")
///     .input(LazySchema::new(RawJson::from(json!({"type": "object", "required": ["city"]}))))
///     .run(invoke_fn(|_| async { Ok::<_, ToolError>(json!("clear")) }));
/// let stack = ValidationLayer.layer(TargetBackend);
/// let refused = stack.invoke(&mut CallContext::local(&weather, Arguments::none())).await;
/// assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidArguments);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct ValidationLayer;

/// Service of [`ValidationLayer`].
#[derive(Debug, Clone)]
pub struct Validation<S> {
    inner: S,
}

impl ValidationLayer {
    /// Name of the layer in events and metrics of refused calls.
    pub const REFUSED_AS: &'static str = "validate";
}

impl NamedLayer for ValidationLayer {
    const NAME: &'static str = "validation";
}

impl<S> Layer<S> for ValidationLayer {
    type Invoke = Validation<S>;

    fn layer(self, inner: S) -> Validation<S> {
        Validation { inner }
    }
}

impl<S: Invoke> Invoke for Validation<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        // The arguments of a task were checked when its call was made.
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
        // Adapted arguments were checked already.
        if adapted.is_none()
            && let Err(error) = check(cx)
        {
            cx.explain(ValidationLayer::NAME, || format!("refused: {}", masked(&error)));
            return Err(refuse(cx, &error));
        }
        cx.explain(ValidationLayer::NAME, || {
            "the arguments satisfy the input schema".to_owned()
        });
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

fn check(cx: &CallContext) -> Result<(), CheckError> {
    check_arguments(cx, &cx.arguments)
}

/// Checks the arguments of a call. Most are accepted without a parsed tree, which costs more than the check itself.
fn check_arguments(cx: &CallContext, arguments: &Arguments) -> Result<(), CheckError> {
    let input = cx.tool().input();
    if input.surely_fits(arguments.raw()) {
        return Ok(());
    }
    input.check(arguments.value())
}

/// Coerces the arguments, fills in defaults, and puts the result into the call. Returns `None` if the arguments stay unchanged.
fn adapt(cx: &mut CallContext, handling: ArgumentHandling) -> Result<Option<AdaptedArguments>, ToolError> {
    let tool = cx.tool().clone();
    // Coercion changes only arguments that do not satisfy the schema; sanitizing also removes members from those that do.
    let is_unchanged = match handling {
        ArgumentHandling::Strict => true,
        ArgumentHandling::Coerce => check(cx).is_ok(),
        _ => false,
    };
    let converted = if is_unchanged {
        None
    } else {
        tool.input().adapt(cx.arguments.raw(), handling)
    };
    let current = converted
        .as_ref()
        .map_or(cx.arguments.raw(), |adapted| &adapted.arguments);
    let filled = if settings(cx).fills_defaults() {
        tool.input().fill_defaults(current)
    } else {
        None
    };
    if let Some(filled) = filled {
        let arguments = Arguments::from_raw(filled.arguments.clone())?;
        if check_arguments(cx, &arguments).is_ok() {
            let before = converted.map_or_else(Vec::new, |adapted| adapted.changes);
            let changes = before.into_iter().chain(filled.changes).collect();
            return Ok(Some(replace_arguments(cx, arguments, changes)));
        }
        cx.explain(ValidationLayer::NAME, || {
            "defaults were not filled in: with them, the arguments would not satisfy the input schema"
                .to_owned()
        });
    }
    let Some(adapted) = converted else {
        return Ok(None);
    };
    let arguments = Arguments::from_raw(adapted.arguments.clone())?;
    if let Err(error) = check_arguments(cx, &arguments) {
        cx.explain(ValidationLayer::NAME, || {
            format!("refused, though {adapted}: {}", masked(&error))
        });
        return Err(refuse(cx, &error));
    }
    Ok(Some(replace_arguments(cx, arguments, adapted.changes)))
}

/// Replaces the arguments of a call, and notifies observers of the changes.
fn replace_arguments(cx: &mut CallContext, arguments: Arguments, changes: Vec<Change>) -> AdaptedArguments {
    let adapted = AdaptedArguments::new(arguments.raw().clone(), changes);
    cx.explain(ValidationLayer::NAME, || adapted.to_string());
    let event = Event::adapted(cx, &adapted);
    cx.observers.emit(&event);
    cx.arguments = Arc::new(arguments);
    adapted
}

/// Emits the event of a refused call, and returns its error.
fn refuse(cx: &CallContext, error: &CheckError) -> ToolError {
    let reason = match error {
        CheckError::Mismatch(_) => "arguments",
        _ => "schema",
    };
    cx.emit_refused(ValidationLayer::REFUSED_AS, reason);
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

fn settings(cx: &CallContext) -> ArgumentSettings {
    let settings = cx.tool().settings().get::<ArgumentSettings>();
    settings.copied().unwrap_or_default()
}
