use tool_core::{CallContext, Invoke, Layer, NamedLayer, Outcome, ToolError};

use super::{
    ApprovalDesk,
    authorize::Authorization,
    bound_call::Unapproved,
    client_question::{QUESTION_KEY, check_answer},
    resume_token::{ResumeToken, drop_foreign_meta},
};
use crate::SharedRules;

/// Holds calls until somebody approves them.
///
/// Does nothing for a tool until the [`Rules`](crate::Rules) that it was created with name the tool, or its `Settings` contain
/// [`ApprovalRule::Required`](crate::ApprovalRule). The desk and all calls must use the same clock.
///
/// # Who decides
/// The user at the client of the call decides, if that client can show a form and [`ApprovalRules`](crate::ApprovalRules) do not
/// require a separate approver. A client that takes rounds is asked by [`Outcome::NeedsInput`], any other one through
/// [`CallOrigin::ask`](tool_core::CallOrigin::ask). Otherwise the call ends as [`Outcome::Pending`] with a handle, and somebody
/// decides at the [`ApprovalDesk`]. Then the caller makes the same call again, with or without the handle in its `_meta` under
/// [`ApprovalLayer::META_KEY`].
///
/// Nobody is asked about a fallback tool: it is refused.
///
/// # Scope of an approval
/// One call by this caller of this tool as it is, with these arguments, under these rules, until it expires. Rounds that the tool
/// asks for belong to that call. The approval can be used again only if no attempt of the call was sent. The states of an
/// approval, and their transitions, are in the table of `next` in `approval/stage.rs`.
///
/// # Order
/// Inside validation, so that nobody is asked about a call that cannot be made. Outside the layers that repeat or replace
/// attempts, so that somebody decides once for all of them.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use tool_core::{Clock, Layer, Pattern};
/// use tool_policy::{ApprovalDesk, ApprovalLayer, ApprovalRules, MemoryApprovals, Rules};
///
/// # fn stack<S>(clock: Arc<dyn Clock>, executor: S) {
/// let approval = ApprovalRules::default().with_required(vec![Pattern::new("pay_*")]);
/// let rules = Rules::default().with_approval(approval);
/// let desk = ApprovalDesk::new(Arc::new(MemoryApprovals::default()), [], clock);
/// let stack = ApprovalLayer::new(rules, desk.clone()).layer(executor);
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ApprovalLayer {
    pub(super) rules: SharedRules,
    pub(super) desk: ApprovalDesk,
}

/// Service of [`ApprovalLayer`].
#[derive(Debug, Clone)]
pub struct Approval<S> {
    settings: ApprovalLayer,
    inner: S,
}

impl ApprovalLayer {
    /// Name of the layer in events and metrics of refused calls.
    pub const REFUSED_AS: &'static str = "approve";
    /// Key in `_meta` under which a caller sends the handle of an approval.
    pub const META_KEY: &'static str = "dev.toolplane/approval";

    /// Creates a layer that applies these rules. Rules that [`SharedRules::store`] puts in later apply at once. The desk is where
    /// people decide about calls whose client cannot ask its user.
    #[must_use]
    pub fn new(rules: impl Into<SharedRules>, desk: ApprovalDesk) -> Self {
        Self {
            rules: rules.into(),
            desk,
        }
    }
}

impl NamedLayer for ApprovalLayer {
    const NAME: &'static str = "approval";
}

impl<S> Layer<S> for ApprovalLayer {
    type Invoke = Approval<S>;

    fn layer(self, inner: S) -> Approval<S> {
        Approval {
            settings: self,
            inner,
        }
    }
}

impl<S: Invoke> Invoke for Approval<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let rules = self.settings.rules.load();
        let Some(reason) = rules.approval_reason(&cx.target, &cx.origin.caller) else {
            if cx.extras.resume.is_some() {
                continue_without_approval(cx).map_err(|unapproved| refuse(cx, unapproved))?;
            }
            return self.inner.invoke(cx).await;
        };
        if let Some(fallback_of) = &cx.fallback_of {
            // An approval of one tool is not an approval of another, and nobody can be asked in the middle of a call.
            let message = format!(
                "the tool needs approval, so it cannot be a fallback of `{}`",
                fallback_of.first()
            );
            cx.explain(ApprovalLayer::NAME, || {
                "refused: it is called as a fallback".to_owned()
            });
            return Err(refuse(cx, Unapproved::denied("stand_in", message)));
        }
        if cx.is_dry_run() {
            cx.explain(ApprovalLayer::NAME, || {
                format!("would ask for approval, because {reason}")
            });
            return self.inner.invoke(cx).await;
        }
        // An approval covers the arguments: nobody saw anything else.
        let has_extra_params = cx.extras.extra_params.take().is_some();
        if drop_foreign_meta(cx) || has_extra_params {
            cx.explain(ApprovalLayer::NAME, || {
                "drops request members other than the arguments".to_owned()
            });
        }
        // Boxed, so that calls without approval do not carry the size of its future.
        let authorization = Box::pin(self.settings.authorize(cx, reason.into_owned())).await;
        let grant = match authorization {
            Ok(Authorization::Granted(grant)) => grant,
            Ok(Authorization::Open(outcome)) => return Ok(outcome),
            Err(unapproved) => {
                cx.explain(ApprovalLayer::NAME, || format!("refused: {}", unapproved.error));
                return Err(refuse(cx, unapproved));
            }
        };
        let mut result = self.inner.invoke(cx).await;
        let finished = self.settings.finish(cx, grant, &mut result);
        // The caller receives the result in any case. An approval that cannot be finished stays used.
        if let Err(Unapproved { error, .. }) = Box::pin(finished).await {
            cx.explain(ApprovalLayer::NAME, || {
                format!("the approval could not be stored after the call: {error}")
            });
        }
        result
    }
}

/// Continues a call that needed approval in an earlier round, and no longer does, since the rules changed. A user who declined
/// meanwhile still prevents it.
fn continue_without_approval(cx: &mut CallContext) -> Result<(), Unapproved> {
    let Some(token) = ResumeToken::from_call(cx) else {
        return Ok(());
    };
    cx.extras.resume = token.for_tool();
    let answer = token.resume.responses.get(QUESTION_KEY);
    match answer.filter(|_| token.round.is_none()) {
        Some(answer) => check_answer(&answer),
        None => Ok(()),
    }
}

/// Emits the event of a refused call, and returns its error.
fn refuse(cx: &CallContext, unapproved: Unapproved) -> ToolError {
    cx.emit_refused(ApprovalLayer::REFUSED_AS, unapproved.reason);
    unapproved.error
}
