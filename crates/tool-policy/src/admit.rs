use tool_core::{CallContext, Invoke, Layer, Outcome, ToolError};

use crate::SharedRules;

/// Refuses calls that the [`Rules`](crate::Rules) do not admit.
///
/// # Order
/// It stands outside everything that shares results between callers, or a refused caller could read another's.
#[derive(Debug, Clone)]
pub struct Admit {
    rules: SharedRules,
}

/// The layer of [`Admit`].
#[derive(Debug, Clone)]
pub struct Admitting<S> {
    rules: SharedRules,
    inner: S,
}

impl Admit {
    /// A layer that goes by these rules, and by others as soon as they are put in their place.
    #[must_use]
    pub fn new(rules: impl Into<SharedRules>) -> Self {
        Self { rules: rules.into() }
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
        if let Err(refusal) = self.rules.load().admit_call(&cx.target, &cx.caller) {
            cx.note("admit", || format!("refused: {refusal}"));
            cx.tell_refused("admit", refusal.word());
            return Err(refusal.into());
        }
        let principal = cx.caller.principal.clone();
        cx.note("admit", || format!("`{principal}` may call it"));
        self.inner.invoke(cx).await
    }
}
