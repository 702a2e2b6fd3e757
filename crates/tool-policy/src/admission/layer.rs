use std::sync::Arc;

use tool_core::{Body, CallContext, Invoke, Layer, NamedLayer, Outcome, Target, ToolError, UriCompletion};

use super::SharedRules;

/// Refuses calls that the [`Rules`](crate::Rules) do not admit. From completions of URI templates it removes the values that
/// lead to a resource which the rules do not admit.
///
/// # Order
/// Outside every layer that shares results between callers: otherwise a refused caller could read another caller's result.
///
/// # Examples
/// ```
/// use tool_core::{Layer, Pattern};
/// use tool_policy::{AdmissionLayer, Rules};
///
/// # fn stack<S>(executor: S) {
/// let rules = Rules { blocklist: vec![Pattern::new("files__delete_*")], ..Rules::default() };
/// let admission = AdmissionLayer::new(rules).layer(executor);
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct AdmissionLayer {
    rules: SharedRules,
}

/// Service of [`AdmissionLayer`].
#[derive(Debug, Clone)]
pub struct Admission<S> {
    rules: SharedRules,
    inner: S,
}

impl AdmissionLayer {
    /// Name of the layer in events and metrics of refused calls.
    pub const REFUSED_AS: &'static str = "admit";

    /// Creates a layer that applies these rules. Rules that [`SharedRules::store`] puts in later apply at once.
    #[must_use]
    pub fn new(rules: impl Into<SharedRules>) -> Self {
        Self { rules: rules.into() }
    }
}

impl NamedLayer for AdmissionLayer {
    const NAME: &'static str = "admission";
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
        if let Err(denial) = self.rules.load().admit_call(&cx.target, &cx.origin.caller) {
            cx.explain(AdmissionLayer::NAME, || format!("refused: {denial}"));
            cx.emit_refused(AdmissionLayer::REFUSED_AS, denial.code());
            return Err(denial.into());
        }
        let principal = cx.origin.caller.principal.clone();
        cx.explain(AdmissionLayer::NAME, || format!("`{principal}` may call it"));
        let mut outcome = self.inner.invoke(cx).await?;
        self.retain_admitted(cx, &mut outcome);
        Ok(outcome)
    }
}

impl<S> Admission<S> {
    /// Removes the values of a completion that lead to resources which the caller may not read.
    fn retain_admitted(&self, cx: &mut CallContext, outcome: &mut Outcome) {
        let (Target::Completion(template), Outcome::Reply(reply)) = (cx.target.clone(), outcome) else {
            return;
        };
        let (Body::Result(result), Some(uri)) = (&mut reply.body, &template.descriptor().uri) else {
            return;
        };
        let rules = self.rules.load();
        let admitted = UriCompletion::new(uri, cx.arguments.raw()).retain(result, |uri| {
            let target = Target::Resource {
                resource: Arc::clone(&template),
                uri: uri.into(),
            };
            rules.admit_call(&target, &cx.origin.caller).is_ok()
        });
        if admitted != *result {
            cx.explain(AdmissionLayer::NAME, || {
                "removed values that the caller may not read from the completion".to_owned()
            });
            *result = admitted;
        }
    }
}
