use tool_core::{CallContext, ErrorKind, Invoke, Layer, NamedLayer, Outcome, ToolError};

use super::MaxArgumentsBytes;

/// Refuses calls whose arguments exceed [`MaxArgumentsBytes`]. Without the setting it does nothing.
///
/// # Examples
/// ```
/// use tool_core::Layers;
/// use tool_policy::{ArgumentSizeLayer, ValidationLayer};
///
/// # fn stack<S>(executor: S) {
/// // Before validation, which parses the arguments.
/// let stack = Layers::outermost(ArgumentSizeLayer).then(ValidationLayer).around(executor);
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct ArgumentSizeLayer;

/// Service of [`ArgumentSizeLayer`].
#[derive(Debug, Clone)]
pub struct ArgumentSize<S> {
    inner: S,
}

impl ArgumentSizeLayer {
    /// Name of the layer in events and metrics of refused calls.
    pub const REFUSED_AS: &'static str = "argument_size";
}

impl NamedLayer for ArgumentSizeLayer {
    const NAME: &'static str = "argument size";
}

impl<S> Layer<S> for ArgumentSizeLayer {
    type Invoke = ArgumentSize<S>;

    fn layer(self, inner: S) -> ArgumentSize<S> {
        ArgumentSize { inner }
    }
}

impl<S: Invoke> Invoke for ArgumentSize<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        check_size(cx)?;
        self.inner.invoke(cx).await
    }
}

fn check_size(cx: &mut CallContext) -> Result<(), ToolError> {
    let Some(&MaxArgumentsBytes(limit)) = cx.tool().settings().get() else {
        return Ok(());
    };
    let n_bytes = cx.arguments.raw().len();
    let is_refused = n_bytes > limit;
    cx.explain(ArgumentSizeLayer::NAME, || {
        let verdict = if is_refused { "refused: " } else { "" };
        format!("{verdict}{n_bytes} of at most {limit} bytes")
    });
    if !is_refused {
        return Ok(());
    }
    cx.emit_refused(ArgumentSizeLayer::REFUSED_AS, "bytes");
    Err(ToolError::new(
        ErrorKind::InvalidArguments,
        format!(
            "the arguments have {n_bytes} bytes, more than the {limit} of `max_arguments_bytes`: send less"
        ),
    ))
}
