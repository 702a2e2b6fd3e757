//! Carries out the stages of a call that needs approval: see [`stage`](super::stage).

use std::sync::Arc;

use raw_json::RawJson;
use tool_core::{
    ApprovalCall, ApprovalRecord, ApprovalState, CallContext, DispatchState, NamedLayer, Outcome,
    PendingCall, TargetBackend, ToolError,
};
use uuid::Uuid;

use super::{
    ApprovalLayer,
    bound_call::{Unapproved, bind, check_binding},
    client_question::{QUESTION_KEY, check_answer, question, question_outcome, way_to_ask},
    resume_token::{ResumeToken, resume_state, take_handle},
    stage::{ApprovalEvent, Stage, next},
    text::approval_json,
};

/// Decision on a call that needs approval.
pub(super) enum Authorization {
    /// The call may run with this approval.
    Granted(Grant),
    /// The call must wait, and this is its outcome.
    Open(Outcome),
}

/// An approval that a call has claimed.
pub(super) struct Grant {
    /// The approval before the claim.
    approval: ApprovalRecord,
    /// Person who approved.
    by: Arc<str>,
    /// Round of the call.
    round: u32,
}

impl ApprovalLayer {
    /// Decides whether a call may run. Asks for a decision if there is none.
    pub(super) async fn authorize(
        &self,
        cx: &mut CallContext,
        reason: String,
    ) -> Result<Authorization, Unapproved> {
        // One version of the rules for the whole decision, even if they are replaced meanwhile.
        let rules = Arc::clone(&self.rules.load());
        let (by_another, lifetime) = (rules.approval.separate_approver, rules.approval.expires_after);
        let policy_digest = raw_json::digest(&RawJson::from(format!("{rules:?}").as_str()));
        let backend = TargetBackend::for_call(cx).clone();
        let subject = backend.approval_subject_boxed(cx).await;
        let subject = subject.map_err(|error| Unapproved {
            error,
            reason: "no_subject",
        })?;
        cx.extras.approved_subject = subject.as_ref().map(|subject| subject.digest);
        let call = bind(cx, reason, policy_digest, by_another, (subject, lifetime))?;
        let token = ResumeToken::from_call(cx);
        let handle = take_handle(cx);
        if let Some(handle) = token.as_ref().map(|token| token.handle.clone()).or(handle) {
            let approval = self.find(&handle, &call, cx).await?;
            return match token {
                Some(token) => self.continue_call(cx, approval, token).await,
                None => self.advance(cx, approval, ApprovalEvent::Called).await,
            };
        }
        let mut request = ApprovalRecord::new(
            Uuid::new_v4().simple().to_string().into(),
            Arc::new(call),
            cx.clock.now() + lifetime,
            ApprovalState::Pending,
        );
        if way_to_ask(cx, &request).is_some() {
            // Two equal calls are two questions: each answer is for one of them.
            request.state = ApprovalState::Asked;
        }
        let handle = request.handle.clone();
        let stored = self.desk.approvals().ask(request, cx.clock.now()).await;
        let approval = stored.map_err(|error| Unapproved::not_stored(&error))?;
        if approval.handle == handle {
            self.desk.notify(&approval);
        }
        self.advance(cx, approval, ApprovalEvent::Called).await
    }

    /// Finds the approval of this handle, and checks that it is for this very call.
    async fn find(
        &self,
        handle: &str,
        call: &ApprovalCall,
        cx: &CallContext,
    ) -> Result<ApprovalRecord, Unapproved> {
        let found = self.desk.approvals().get(handle).await;
        let approval = found
            .map_err(|error| Unapproved::not_stored(&error))?
            .ok_or_else(|| Unapproved::unknown(handle))?;
        check_binding(&approval.call, call, handle)?;
        if approval.expiry <= cx.clock.now() {
            return Err(Unapproved::unknown(handle));
        }
        Ok(approval)
    }

    /// Continues a call whose caller returns from an earlier round.
    async fn continue_call(
        &self,
        cx: &mut CallContext,
        approval: ApprovalRecord,
        token: ResumeToken,
    ) -> Result<Authorization, Unapproved> {
        cx.extras.resume = token.for_tool();
        if let Some(round) = token.round {
            return self
                .advance(cx, approval, ApprovalEvent::Continued { round })
                .await;
        }
        let is_open = approval.state.is_undecided() && !approval.call.by_another;
        match token.resume.responses.get(QUESTION_KEY).filter(|_| is_open) {
            Some(answer) => self.apply_answer(cx, approval, &answer).await,
            None => self.advance(cx, approval, ApprovalEvent::Called).await,
        }
    }

    /// Carries out the stage that follows from an event.
    async fn advance(
        &self,
        cx: &mut CallContext,
        approval: ApprovalRecord,
        event: ApprovalEvent,
    ) -> Result<Authorization, Unapproved> {
        match next(&approval.state, event) {
            Stage::Ask => self.ask(cx, approval).await,
            Stage::Run { round } => self.claim(cx, approval, round).await,
            _ => Err(Unapproved::by_state(&approval)),
        }
    }

    /// Asks the user at the client where that is possible. Otherwise leaves the call to the desk.
    async fn ask(&self, cx: &mut CallContext, approval: ApprovalRecord) -> Result<Authorization, Unapproved> {
        if let Some((asker, message)) = way_to_ask(cx, &approval) {
            if asker.client().takes_rounds() {
                cx.explain(Self::NAME, || {
                    format!("asks the client to approve it, as `{}`", approval.handle)
                });
                return Ok(Authorization::Open(question_outcome(&approval, &message)));
            }
            match asker.ask(question(&message)).await {
                Ok(answer) => return self.apply_answer(cx, approval, &answer).await,
                Err(error) => cx.explain(Self::NAME, || {
                    format!("the client did not answer the approval request: {error}")
                }),
            }
        }
        cx.explain(Self::NAME, || {
            format!("waits for a decision, as `{}`", approval.handle)
        });
        let outcome = pending(&approval);
        if approval.state == ApprovalState::Asked {
            // A pending approval is found when the same call is made again.
            self.replace(&ApprovalState::Asked, approval, ApprovalState::Pending)
                .await?;
        }
        Ok(Authorization::Open(outcome))
    }

    /// Applies the answer of the user at the client.
    async fn apply_answer(
        &self,
        cx: &mut CallContext,
        approval: ApprovalRecord,
        answer: &RawJson,
    ) -> Result<Authorization, Unapproved> {
        // The desk may have decided before the user did.
        let current = self.find(&approval.handle, &approval.call, cx).await?;
        let by = cx.origin.caller.principal.clone();
        let (event, declined) = match check_answer(answer) {
            Ok(()) => (ApprovalEvent::Accepted, None),
            Err(unapproved) => (ApprovalEvent::Declined, Some(unapproved)),
        };
        match (next(&current.state, event), declined) {
            (Stage::Run { round }, _) => {
                let authorization = self.claim(cx, current.clone(), round).await?;
                let state = ApprovalState::Approved { by };
                self.desk.notify(&current.with_state(state));
                Ok(authorization)
            }
            (Stage::Decline, Some(unapproved)) => {
                // The next call may ask again: only a decision at the desk stays.
                let is_ended = self
                    .replace(&current.state.clone(), current.clone(), ApprovalState::Ended)
                    .await?;
                if is_ended {
                    let state = ApprovalState::Denied { by, reason: None };
                    self.desk.notify(&current.with_state(state));
                }
                cx.explain(Self::NAME, || "refused: the user declined".to_owned());
                Err(unapproved)
            }
            _ => Err(Unapproved::by_state(&current)),
        }
    }

    /// Claims the approval for a round of the call. Only one call can.
    async fn claim(
        &self,
        cx: &mut CallContext,
        approval: ApprovalRecord,
        round: u32,
    ) -> Result<Authorization, Unapproved> {
        let by = match &approval.state {
            ApprovalState::Approved { by } => by.clone(),
            _ => cx.origin.caller.principal.clone(),
        };
        // A store forgets expired approvals, and this one is needed until the call ends.
        let left = cx.remaining().unwrap_or(cx.tool().settings().call_timeout);
        let mut claimed = approval.clone();
        claimed.expiry = approval.expiry.max(cx.clock.now() + left);
        let running = ApprovalState::Running { round };
        if !self.replace(&approval.state, claimed, running).await? {
            return Err(Unapproved::used(&approval));
        }
        cx.explain(Self::NAME, || {
            format!("`{by}` approved it, as `{}`", approval.handle)
        });
        Ok(Authorization::Granted(Grant { approval, by, round }))
    }

    /// Changes the state of an approval. Returns `false` if it was changed by another call or person first.
    async fn replace(
        &self,
        from: &ApprovalState,
        approval: ApprovalRecord,
        state: ApprovalState,
    ) -> Result<bool, Unapproved> {
        let new = approval.with_state(state);
        let replaced = self.desk.approvals().replace(from, new).await;
        replaced.map_err(|error| Unapproved::not_stored(&error))
    }

    /// Ends the use of an approval, as the result of its call requires.
    pub(super) async fn finish(
        &self,
        cx: &CallContext,
        grant: Grant,
        result: &mut Result<Outcome, ToolError>,
    ) -> Result<(), Unapproved> {
        let Grant { approval, by, round } = grant;
        let running = ApprovalState::Running { round };
        // Attempts of a fallback count as well.
        let is_unsent = cx.max_dispatch_state() == DispatchState::NotSent;
        let event = match result {
            Ok(Outcome::NeedsInput(_)) => ApprovalEvent::InputNeeded,
            Ok(Outcome::Pending(pending)) if pending.is_at_work() => ApprovalEvent::Unfinished,
            Err(_) if is_unsent => ApprovalEvent::NotSent,
            _ => ApprovalEvent::Finished,
        };
        match (next(&running, event), result) {
            (Stage::Wait { round }, Ok(Outcome::NeedsInput(input))) => {
                input.state = Some(resume_state(&approval.handle, Some(round), input.state.take()));
                let mut waiting = approval;
                waiting.expiry = cx.clock.now() + self.rules.load().approval.expires_after;
                self.replace(&running, waiting, ApprovalState::Waiting { round })
                    .await?;
            }
            (Stage::Return, _) => {
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

/// Returns the outcome of a call that waits for a decision at the desk.
fn pending(approval: &ApprovalRecord) -> Outcome {
    // The details are for whoever decides: the caller knows them, and they may be long.
    let shown = approval_json(approval);
    let shown = shown.without_members(&["details"]).unwrap_or(shown);
    Outcome::Pending(Box::new(
        PendingCall::new(approval.handle.clone(), "somebody's approval".to_owned()).with_detail(Some(shown)),
    ))
}
