use std::sync::Arc;

use tool_core::{Body, CallContext, Invoke, Layer, Outcome, Target, ToolError, UriCompletion};

use super::SharedRules;

/// Refuses calls that the [`Rules`](crate::Rules) do not admit, and leaves out of completions of URI templates what leads to
/// a resource that they do not admit.
///
/// # Order
/// It stands outside everything that shares results between callers, or a refused caller could read another's.
#[derive(Debug, Clone)]
pub struct AdmissionLayer {
    rules: SharedRules,
}

/// The layer of [`AdmissionLayer`].
#[derive(Debug, Clone)]
pub struct Admission<S> {
    rules: SharedRules,
    inner: S,
}

impl AdmissionLayer {
    /// A layer that goes by these rules, and by others as soon as they are put in their place.
    #[must_use]
    pub fn new(rules: impl Into<SharedRules>) -> Self {
        Self { rules: rules.into() }
    }
}

impl<S> Layer<S> for AdmissionLayer {
    type Invoke = Admission<S>;

    fn layer(self, inner: S) -> Admission<S> {
        Admission {
            rules: self.rules,
            inner,
        }
    }
}

impl<S: Invoke> Invoke for Admission<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        if let Err(refusal) = self.rules.load().admit_call(&cx.target, &cx.origin.caller) {
            cx.explain("admit", || format!("refused: {refusal}"));
            cx.emit_refused("admit", refusal.word());
            return Err(refusal.into());
        }
        let principal = cx.origin.caller.principal.clone();
        cx.explain("admit", || format!("`{principal}` may call it"));
        let mut outcome = self.inner.invoke(cx).await?;
        self.retain_admitted(cx, &mut outcome);
        Ok(outcome)
    }
}

impl<S> Admission<S> {
    /// Leaves out the values of a completion that lead to resources which the caller may not read.
    fn retain_admitted(&self, cx: &mut CallContext, outcome: &mut Outcome) {
        let (Target::Completion(template), Outcome::Reply(reply)) = (cx.target.clone(), outcome) else {
            return;
        };
        let (Body::Result(result), Some(uri)) = (&mut reply.body, &template.descriptor().uri) else {
            return;
        };
        let rules = self.rules.load();
        let shown = UriCompletion::new(uri, cx.arguments.raw()).retain(result, |uri| {
            let target = Target::Resource {
                resource: Arc::clone(&template),
                uri: uri.into(),
            };
            rules.admit_call(&target, &cx.origin.caller).is_ok()
        });
        if shown != *result {
            cx.explain("admit", || "values were left out of the completion".to_owned());
            *result = shown;
        }
    }
}
