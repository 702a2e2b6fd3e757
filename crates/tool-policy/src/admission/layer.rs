use std::sync::Arc;

use tool_core::{Body, CallContext, Invoke, Layer, NamedLayer, Outcome, Target, ToolError, UriCompletion};

use super::SharedRules;

/// Refuses calls that the rules do not admit.
///
/// Acts on every call, by the [`Rules`](crate::Rules) that it was created with and the permissions that the tool's metadata
/// require. From completions of URI templates it removes the values that
/// lead to a resource which the rules do not admit.
///
/// # Order
/// Outside every layer that shares results between callers: otherwise a refused caller could read another caller's result.
///
/// # Examples
/// ```
/// use tool_core::{Arguments, CallContext, ErrorKind, Invoke, Layer, Pattern, TargetBackend, Tool, ToolError};
/// use tool_core::{invoke_fn, serde_json::json};
/// use tool_policy::{AdmissionLayer, Rules};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), ToolError> {
/// let delete = Tool::builder("files__delete_all").run(invoke_fn(|_| async { Ok::<_, ToolError>(json!("done")) }));
/// let rules = Rules::default().with_blocklist([Pattern::new("files__delete_*")]);
/// let stack = AdmissionLayer::new(rules).layer(TargetBackend);
/// let refused = stack.invoke(&mut CallContext::local(&delete, Arguments::none())).await;
/// assert_eq!(refused.unwrap_err().kind(), ErrorKind::Denied);
/// # Ok(())
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
