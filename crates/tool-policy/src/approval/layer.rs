use std::sync::Arc;

use raw_json::RawJson;
use tool_core::{
    ApprovalCall, ApprovalRecord, ApprovalState, ApprovalsError, Asker, CallContext, DispatchState,
    ErrorKind, InputRequest, Invoke, Layer, Outcome, PendingCall, Question, Resume, ToolError,
};
use uuid::Uuid;

use super::{
    ApprovalDesk,
    sealed_call::{self, Unapproved},
    text::{approval_json, question},
};
use crate::SharedRules;

/// Lets calls pass that somebody has approved, where the [`Rules`](crate::Rules) or a tool's settings ask for that.
///
/// # Who decides
/// The person at the client of the call, if that client can be asked by a form and [`ApprovalRules`](crate::ApprovalRules)
/// do not want another to decide: a client that takes rounds is asked by [`Outcome::NeedsInput`], any other through
/// [`CallContext::ask`]. Otherwise the call ends as [`Outcome::Pending`] with a handle, and somebody decides at the
/// [`ApprovalDesk`]; then the same call is made again, with the handle in its `_meta` under [`ApprovalLayer::META_KEY`] or
/// without it.
///
/// Nobody is asked about a tool that stands in for another one: it is refused.
///
/// # What an approval is good for
/// One call by this caller of this tool as it is, with these arguments, under these rules, until it expires. Rounds that
/// the tool asks for belong to that call. It is given back only when nothing of the call was begun.
///
/// # Order
/// Inside validation, so that nobody is asked about a call that cannot be made; outside whatever repeats or replaces
/// attempts, so that somebody decides once for all of them.
#[derive(Debug, Clone)]
pub struct ApprovalLayer {
    rules: SharedRules,
    desk: ApprovalDesk,
}

/// The layer of [`ApprovalLayer`].
#[derive(Debug, Clone)]
pub struct Approval<S> {
    settings: ApprovalLayer,
    inner: S,
}

/// What the names of our own members of `_meta` begin with.
const OURS: &str = "dev.toolplane/";

/// Members of `_meta` that say which trace a call belongs to (W3C Trace Context).
const TRACE: [&str; 2] = ["traceparent", "tracestate"];

/// Under which key a question and its answer are, of all that a round may ask.
const QUESTION: &str = "approval";

/// Whether a call may pass now.
enum Standing {
    /// It may.
    Approved(Granted),
    /// It must wait, and this is its outcome.
    Open(Outcome),
}

/// An approval that a call has taken.
struct Granted {
    /// As it was before.
    approval: ApprovalRecord,
    /// Who gave it.
    by: Arc<str>,
    /// The round of the call.
    round: u32,
}

/// What the caller brings from an earlier round.
struct Brought {
    handle: Arc<str>,
    /// The round of the tool's own; nothing if it was ours.
    round: Option<u32>,
    resume: Arc<Resume>,
    /// What the tool wants back.
    state: Option<RawJson>,
}

impl ApprovalLayer {
    /// Where in `_meta` a caller says which approval it comes with.
    pub const META_KEY: &str = "dev.toolplane/approval";

    /// A layer that goes by these rules, and by others as soon as they are put in their place, with the desk at which
    /// those decide who cannot be asked at once.
    #[must_use]
    pub fn new(rules: impl Into<SharedRules>, desk: ApprovalDesk) -> Self {
        Self {
            rules: rules.into(),
            desk,
        }
    }

    async fn stand(&self, cx: &mut CallContext, reason: String) -> Result<Standing, Unapproved> {
        // One set of rules for all of it, whatever is put in its place meanwhile.
        let rules = Arc::clone(&self.rules.load());
        let (by_another, lifetime) = (rules.approval.separate_approver, rules.approval.expires_after);
        let policy_digest = raw_json::digest(&RawJson::from(format!("{rules:?}").as_str()));
        let call = sealed_call::of(cx, reason, policy_digest, by_another, lifetime)?;
        let brought = Brought::take(cx);
        let handle = take_handle(cx);
        if let Some(handle) = brought.as_ref().map(|brought| brought.handle.clone()).or(handle) {
            let approval = self.known(&handle, &call, cx).await?;
            return match brought {
                Some(brought) => self.go_on(cx, approval, brought).await,
                None => self.decided(cx, approval).await,
            };
        }
        let mut asked = ApprovalRecord {
            handle: Uuid::new_v4().simple().to_string().into(),
            call: Arc::new(call),
            expiry: cx.clock.now() + lifetime,
            state: ApprovalState::Pending,
        };
        if way_to_ask(cx, &asked).is_some() {
            // Two calls of the same are two questions: each answer is for one.
            asked.state = ApprovalState::Asked;
        }
        let handle = asked.handle.clone();
        let kept = self.desk.approvals().ask(asked, cx.clock.now()).await;
        let approval = kept.map_err(not_kept)?;
        if approval.handle == handle {
            self.desk.tell(&approval);
        }
        self.decided(cx, approval).await
    }

    /// The approval that a caller comes with, if it is for this very call.
    async fn known(
        &self,
        handle: &str,
        call: &ApprovalCall,
        cx: &CallContext,
    ) -> Result<ApprovalRecord, Unapproved> {
        let found = self.desk.approvals().get(handle).await.map_err(not_kept)?;
        let approval = found.ok_or_else(|| sealed_call::unknown(handle))?;
        sealed_call::check(&approval.call, call, handle)?;
        if approval.expiry <= cx.clock.now() {
            return Err(sealed_call::unknown(handle));
        }
        Ok(approval)
    }

    /// Goes on with a call whose caller comes back from an earlier round.
    async fn go_on(
        &self,
        cx: &mut CallContext,
        approval: ApprovalRecord,
        brought: Brought,
    ) -> Result<Standing, Unapproved> {
        cx.extras.resume = brought.of_tool();
        if let Some(round) = brought.round {
            let waiting = ApprovalState::Waiting { round };
            return self.pass(cx, &waiting, approval, round).await;
        }
        let is_ours = approval.state.is_undecided() && !approval.call.by_another;
        match brought.resume.responses.get(QUESTION).filter(|_| is_ours) {
            Some(answer) => self.answered(cx, approval, &answer).await,
            None => self.decided(cx, approval).await,
        }
    }

    /// What follows from how far an approval is: what is not decided is asked.
    async fn decided(&self, cx: &mut CallContext, approval: ApprovalRecord) -> Result<Standing, Unapproved> {
        match approval.state.clone() {
            state @ ApprovalState::Approved { .. } => self.pass(cx, &state, approval, 0).await,
            state if state.is_undecided() => self.ask(cx, approval).await,
            _ => Err(refused(&approval)),
        }
    }

    /// Asks the person at the client where that is possible, or else says what is waited for.
    async fn ask(&self, cx: &mut CallContext, approval: ApprovalRecord) -> Result<Standing, Unapproved> {
        if let Some((asker, message)) = way_to_ask(cx, &approval) {
            let params = form(&message);
            if asker.client().takes_rounds() {
                cx.explain("approve", || format!("asks its client, as `{}`", approval.handle));
                return Ok(Standing::Open(asked(&approval, params)));
            }
            let question = Question {
                method: "elicitation/create".to_owned(),
                params: Some(params),
            };
            match asker.ask(question).await {
                Ok(answer) => return self.answered(cx, approval, &answer).await,
                Err(error) => cx.explain("approve", || format!("its client was asked in vain: {error}")),
            }
        }
        cx.explain("approve", || {
            format!("waits for a decision, as `{}`", approval.handle)
        });
        let outcome = pending(&approval);
        if approval.state == ApprovalState::Asked {
            // Whoever makes the same call again finds it.
            self.replace(&ApprovalState::Asked, approval, ApprovalState::Pending)
                .await?;
        }
        Ok(Standing::Open(outcome))
    }

    /// What the person at the client said.
    async fn answered(
        &self,
        cx: &mut CallContext,
        approval: ApprovalRecord,
        answer: &RawJson,
    ) -> Result<Standing, Unapproved> {
        // Others may have decided while the person looked at it.
        let known = self.known(&approval.handle, &approval.call, cx).await?;
        if !known.state.is_undecided() && !matches!(known.state, ApprovalState::Approved { .. }) {
            return Err(refused(&known));
        }
        let by = cx.origin.caller.principal.clone();
        if let Err(unapproved) = heard(answer) {
            // The next call may ask again: only what is decided at the desk stays so.
            let is_ended = self
                .replace(&known.state.clone(), known.clone(), ApprovalState::Ended)
                .await?;
            if is_ended {
                let state = ApprovalState::Denied { by, reason: None };
                self.desk.tell(&ApprovalRecord { state, ..known });
            }
            cx.explain("approve", || "refused: its client said no".to_owned());
            return Err(unapproved);
        }
        let state = known.state.clone();
        let standing = self.pass(cx, &state, known.clone(), 0).await?;
        self.desk.tell(&ApprovalRecord {
            state: ApprovalState::Approved { by },
            ..known
        });
        Ok(standing)
    }

    /// Takes the approval, which only one call can.
    async fn pass(
        &self,
        cx: &mut CallContext,
        from: &ApprovalState,
        approval: ApprovalRecord,
        round: u32,
    ) -> Result<Standing, Unapproved> {
        let by = match from {
            ApprovalState::Approved { by } => by.clone(),
            _ => cx.origin.caller.principal.clone(),
        };
        // A store forgets what has expired, and this is needed until the call ends.
        let left = cx.remaining().unwrap_or(cx.tool().settings().call_timeout);
        let kept = ApprovalRecord {
            expiry: approval.expiry.max(cx.clock.now() + left),
            ..approval.clone()
        };
        let running = ApprovalState::Running { round };
        if !self.replace(from, kept, running).await? {
            return Err(used(&approval));
        }
        cx.explain("approve", || {
            format!("`{by}` approved it, as `{}`", approval.handle)
        });
        Ok(Standing::Approved(Granted { approval, by, round }))
    }

    /// Changes how far an approval is; false if somebody else did first.
    async fn replace(
        &self,
        from: &ApprovalState,
        approval: ApprovalRecord,
        state: ApprovalState,
    ) -> Result<bool, Unapproved> {
        let new = ApprovalRecord { state, ..approval };
        self.desk.approvals().replace(from, new).await.map_err(not_kept)
    }

    /// Ends the use of an approval by how its call ended.
    async fn settle(
        &self,
        cx: &CallContext,
        granted: Granted,
        result: &mut Result<Outcome, ToolError>,
    ) -> Result<(), Unapproved> {
        let Granted { approval, by, round } = granted;
        let running = ApprovalState::Running { round };
        // Of a tool that stood in for this one as well.
        let is_untouched = cx.max_dispatch_state() == DispatchState::NotSent;
        match result {
            Ok(Outcome::NeedsInput(input)) => {
                let round = round + 1;
                input.state = Some(state(&approval.handle, Some(round), input.state.take()));
                let waiting = ApprovalRecord {
                    // The tool's question may be answered as long as an approval may be given.
                    expiry: cx.clock.now() + self.rules.load().approval.expires_after,
                    ..approval
                };
                self.replace(&running, waiting, ApprovalState::Waiting { round })
                    .await?;
            }
            // Nothing of the call was begun: who repeats it need not ask again.
            Err(_) if round == 0 && is_untouched => {
                self.replace(&running, approval, ApprovalState::Approved { by })
                    .await?;
            }
            _ => {
                self.replace(&running, approval, ApprovalState::Ended).await?;
            }
        }
        Ok(())
    }
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
        let Some(reason) = self.settings.rules.load().approval_of(&cx.target) else {
            if cx.extras.resume.is_some() {
                unasked(cx).map_err(|unapproved| told(cx, unapproved))?;
            }
            return self.inner.invoke(cx).await;
        };
        if let Some(fallback_of) = &cx.fallback_of {
            // Who was asked about one tool has not been asked about another, and cannot be in the middle of a call.
            let message = format!(
                "the tool needs approval, so it cannot stand in for `{}`",
                fallback_of.first()
            );
            cx.explain("approve", || "refused: it stands in for another".to_owned());
            return Err(told(cx, Unapproved::denied("stand_in", message)));
        }
        if cx.is_dry_run() {
            cx.explain("approve", || format!("would ask for approval, because {reason}"));
            return self.inner.invoke(cx).await;
        }
        // An approval is for the arguments: nobody was shown anything else.
        let has_more = cx.extras.extra_params.take().is_some();
        if drop_foreign_meta(cx) || has_more {
            cx.explain("approve", || {
                "what stands beside the arguments is left out".to_owned()
            });
        }
        // Boxed, so that calls which need no approval carry nothing of it.
        let standing = Box::pin(self.settings.stand(cx, reason.into_owned())).await;
        let granted = match standing {
            Ok(Standing::Approved(granted)) => granted,
            Ok(Standing::Open(outcome)) => return Ok(outcome),
            Err(unapproved) => {
                cx.explain("approve", || format!("refused: {}", unapproved.error));
                return Err(told(cx, unapproved));
            }
        };
        let mut result = self.inner.invoke(cx).await;
        let settled = self.settings.settle(cx, granted, &mut result);
        // What the call came to is told in any case; an approval that cannot be settled stays used.
        if let Err(Unapproved { error, .. }) = Box::pin(settled).await {
            cx.explain("approve", || {
                format!("the approval could not be settled: {error}")
            });
        }
        result
    }
}

impl Brought {
    /// Takes what is ours out of what a caller brings from an earlier round.
    fn take(cx: &CallContext) -> Option<Self> {
        let resume = cx.extras.resume.clone()?;
        let ours = resume.state.as_ref()?.get(ApprovalLayer::META_KEY)?;
        Some(Self {
            handle: ours.get("handle")?.string()?.into(),
            round: ours.get("round").and_then(|round| round.to().ok()),
            state: resume.state.as_ref()?.get("state"),
            resume,
        })
    }

    /// What the tool is given of it: nothing, if it asked for nothing.
    fn of_tool(&self) -> Option<Arc<Resume>> {
        self.round.map(|_| {
            Arc::new(Resume {
                responses: self.resume.responses.clone(),
                state: self.state.clone(),
            })
        })
    }
}

/// Goes on with a call that needed approval in an earlier round, and no longer does: other rules hold. Only a person who
/// said no meanwhile is heard.
fn unasked(cx: &mut CallContext) -> Result<(), Unapproved> {
    let Some(brought) = Brought::take(cx) else {
        return Ok(());
    };
    cx.extras.resume = brought.of_tool();
    let answer = brought.resume.responses.get(QUESTION);
    match answer.filter(|_| brought.round.is_none()) {
        Some(answer) => heard(&answer),
        None => Ok(()),
    }
}

/// Whether the person at the client said yes.
fn heard(answer: &RawJson) -> Result<(), Unapproved> {
    let action = answer.get("action").and_then(|action| action.string());
    let is_yes = |content: RawJson| content.get("approve").is_some_and(|yes| yes.as_str() == "true");
    let why = match action.as_deref() {
        Some("accept") if answer.get("content").is_some_and(is_yes) => return Ok(()),
        Some("cancel") => "was asked to approve the call and did not decide",
        _ => "did not approve the call",
    };
    Err(Unapproved::denied("declined", format!("the user {why}")))
}

/// What a caller brings back in the next round.
fn state(handle: &str, round: Option<u32>, inner: Option<RawJson>) -> RawJson {
    let mut ours = vec![("handle", RawJson::from(handle))];
    ours.extend(round.map(|round| ("round", RawJson::from(u64::from(round)))));
    let mut members = vec![(ApprovalLayer::META_KEY, RawJson::from_members(&ours))];
    members.extend(inner.map(|inner| ("state", inner)));
    RawJson::from_members(&members)
}

/// The handle that a caller comes with. It is ours: whoever runs the tool may ask for approvals of its own.
fn take_handle(cx: &mut CallContext) -> Option<Arc<str>> {
    let meta = cx.extras.meta.as_ref()?;
    let handle = meta.get(ApprovalLayer::META_KEY)?.string()?;
    cx.extras.meta = meta
        .without_members(&[ApprovalLayer::META_KEY])
        .ok()
        .filter(|left| left.members().next().is_some());
    Some(handle.into())
}

/// Takes away what the caller says in `_meta` to whoever runs the tool; false if it says nothing. What is said to us stays, and so
/// does the trace.
fn drop_foreign_meta(cx: &mut CallContext) -> bool {
    let is_ours = |key: &str| key.starts_with(OURS) || TRACE.contains(&key);
    let Some(meta) = cx
        .extras
        .meta
        .take_if(|meta| meta.parts().any(|(key, _)| !is_ours(&key)))
    else {
        return false;
    };
    let foreign: Vec<_> = meta
        .parts()
        .map(|(key, _)| key)
        .filter(|key| !is_ours(key))
        .collect();
    let foreign: Vec<&str> = foreign.iter().map(|key| &**key).collect();
    let left = meta.without_members(&foreign).ok();
    cx.extras.meta = left.filter(|left| left.members().next().is_some());
    true
}

/// The way to the person at the client and what to say there, if that one may decide and can be asked all of it.
fn way_to_ask(cx: &CallContext, approval: &ApprovalRecord) -> Option<(Asker, String)> {
    let asker = cx.origin.ask.clone().filter(|_| !approval.call.by_another)?;
    let left = approval.expiry.since(cx.clock.now());
    takes_forms(&asker)
        .then(|| question(approval, left))
        .flatten()
        .map(|message| (asker, message))
}

/// Whether the person at a client can be asked by a form.
fn takes_forms(asker: &Asker) -> bool {
    let capabilities = asker.client().capabilities();
    let Some(elicitation) = capabilities.get("elicitation") else {
        return false;
    };
    // Before there was anything but forms, a client declared just that.
    elicitation.get("form").is_some() || elicitation.members().next().is_none()
}

/// The form in which somebody says yes or no. Nothing is approved by sending it back as it is.
fn form(message: &str) -> RawJson {
    RawJson::from(serde_json::json!({
        "mode": "form",
        "message": message,
        "requestedSchema": {
            "type": "object",
            "properties": {
                "approve": {
                    "type": "boolean",
                    "title": "Approve this call",
                    "description": "Whether the call may be made, once.",
                    "default": false,
                },
            },
            "required": ["approve"],
        },
    }))
}

/// The outcome that has the client ask the person and call again.
fn asked(approval: &ApprovalRecord, params: RawJson) -> Outcome {
    let request = RawJson::from_members(&[
        ("method", RawJson::from("elicitation/create")),
        ("params", params),
    ]);
    Outcome::NeedsInput(Box::new(InputRequest {
        requests: RawJson::from_members(&[(QUESTION, request)]),
        state: Some(state(&approval.handle, None, None)),
    }))
}

fn pending(approval: &ApprovalRecord) -> Outcome {
    Outcome::Pending(Box::new(PendingCall {
        handle: approval.handle.clone(),
        reason: "somebody's approval".to_owned(),
        detail: Some(approval_json(approval)),
    }))
}

/// The error of a refused call, of which observers are told.
fn told(cx: &CallContext, unapproved: Unapproved) -> ToolError {
    cx.emit_refused("approve", unapproved.reason);
    unapproved.error
}

/// Why a call cannot be made with this approval.
fn refused(approval: &ApprovalRecord) -> Unapproved {
    let ApprovalState::Denied { by, reason } = &approval.state else {
        return used(approval);
    };
    let reason = reason
        .as_ref()
        .map(|reason| format!(": {reason}"))
        .unwrap_or_default();
    Unapproved::denied("denied", format!("`{by}` denied the call{reason}"))
}

fn used(approval: &ApprovalRecord) -> Unapproved {
    let message = format!(
        "the approval `{}` was used already; it is good for one call",
        approval.handle
    );
    Unapproved::denied("used", message)
}

/// Where approvals cannot be kept, nothing is approved.
fn not_kept(error: ApprovalsError) -> Unapproved {
    let kind = match error {
        ApprovalsError::Full { .. } => ErrorKind::Overloaded,
        _ => ErrorKind::Unavailable,
    };
    let message = format!("the call needs approval, but {error}");
    Unapproved {
        error: ToolError::new(kind, message).with_source(error),
        reason: "not_kept",
    }
}
