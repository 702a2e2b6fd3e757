use std::sync::Arc;

use tool_core::{CallContext, ErrorKind, Invoke, Layer, Outcome, ToolError};

use crate::Rules;

/// Refuses calls that the [`Rules`] do not admit.
///
/// # Order
/// It stands outside everything that shares results between callers, or a refused caller could read another's.
#[derive(Debug, Clone)]
pub struct Admit {
    rules: Arc<Rules>,
}

/// The layer of [`Admit`].
#[derive(Debug, Clone)]
pub struct Admitting<S> {
    rules: Arc<Rules>,
    inner: S,
}

impl Admit {
    /// A layer that goes by these rules.
    #[must_use]
    pub fn new(rules: Arc<Rules>) -> Self {
        Self { rules }
    }
}

impl<S> Layer<S> for Admit {
    type Invoke = Admitting<S>;

    fn layer(self, inner: S) -> Admitting<S> {
        Admitting {
            rules: self.rules,
            inner,
        }
    }
}

impl<S: Invoke> Invoke for Admitting<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        if let Err(refusal) = self.rules.admit_call(&cx.target, &cx.caller) {
            cx.note("admit", || format!("refused: {refusal}"));
            return Err(ToolError::new(ErrorKind::Denied, refusal.to_string()).with_source(refusal));
        }
        let principal = cx.caller.principal.clone();
        cx.note("admit", || format!("`{principal}` may call it"));
        self.inner.invoke(cx).await
    }
}
