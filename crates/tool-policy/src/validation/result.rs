use serde_json::Value;
use tool_core::{CallContext, ErrorKind, Invoke, Layer, NamedLayer, Outcome, Reply, ToolError};

use super::masked;

/// Refuses results that are too large, or that do not satisfy the tool's output schema if it declares one. A reply in which the
/// tool itself reports a failure passes: it carries no result.
///
/// Does nothing for a tool without an output schema ([`ToolBuilder::output`](tool_core::ToolBuilder::output)) and without
/// `max_result_bytes` in its `Settings`.
#[derive(Debug, Clone, Copy, Default)]
pub struct ResultValidationLayer;

/// Service of [`ResultValidationLayer`].
#[derive(Debug, Clone)]
pub struct ResultValidation<S> {
    inner: S,
}

impl NamedLayer for ResultValidationLayer {
    const NAME: &'static str = "result validation";
}

impl<S> Layer<S> for ResultValidationLayer {
    type Invoke = ResultValidation<S>;

    fn layer(self, inner: S) -> ResultValidation<S> {
        ResultValidation { inner }
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
            check_schema(cx, reply)?;
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
    cx.explain(ResultValidationLayer::NAME, || {
        "refused: it is too large".to_owned()
    });
    Err(ToolError::new(ErrorKind::ResultTooLarge, message))
}

fn check_schema(cx: &mut CallContext, reply: &Reply) -> Result<(), ToolError> {
    let tool = cx.tool().clone();
    let Some(output) = tool.output() else {
        cx.explain(ResultValidationLayer::NAME, || {
            "the tool declares no output schema".to_owned()
        });
        return Ok(());
    };
    let invalid = |message: String| ToolError::new(ErrorKind::ResultInvalid, message);
    let Some(structured) = reply.structured() else {
        cx.explain(ResultValidationLayer::NAME, || {
            "refused: no structured content".to_owned()
        });
        return Err(invalid(
            "the tool declares an output schema and sent no `structuredContent`".to_owned(),
        ));
    };
    let value: Value = structured
        .to()
        .map_err(|error| invalid(format!("the tool's result cannot be read: {error}")))?;
    match output.check(&value) {
        Ok(()) => {
            cx.explain(ResultValidationLayer::NAME, || {
                "the result satisfies the output schema".to_owned()
            });
            Ok(())
        }
        Err(error) => {
            cx.explain(ResultValidationLayer::NAME, || {
                format!("refused: {}", masked(&error))
            });
            // The error itself has the tool's values, which nobody redacts in the source of an error.
            Err(invalid(format!(
                "the tool's result does not fit its output schema: {}",
                masked(&error)
            )))
        }
    }
}
