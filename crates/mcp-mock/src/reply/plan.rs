use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::HeaderMap;
use mcp_wire::{Era, Id, Message, Notification, Request, Revision, RpcError, meta_key, method};
use parking_lot::Mutex;
use raw_json::{JsonKind, RawJson};

use crate::{
    Misbehavior, MockReply,
    json::array,
    reply::{
        mock_reply::{ReplyOutcome, Step},
        script::Script,
    },
    server::{catalog::CatalogEntry, message_log::ReceivedMessage, state::State},
};

/// The answer to one request, decided on its arrival.
#[derive(Debug)]
pub(crate) struct ReplyPlan {
    pub(crate) id: Id,
    pub(crate) method: String,
    pub(crate) reply: MockReply,
    pub(crate) entry: Option<Arc<CatalogEntry>>,
    /// Number of the request among those for the same feature, from 1.
    pub(crate) call: usize,
    /// Number of the request among those of its method, if there are replies for the method.
    rule: usize,
    /// `true` if discovery may name the one modern revision only.
    is_modern_only: bool,
    /// `true` once the service has answered; it never sees the protocol's housekeeping.
    is_served: AtomicBool,
}

/// A message that has arrived, and its handling.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// A request that is answered as planned.
    Request(Arc<ReplyPlan>),
    /// A request that is answered with an error.
    Refused(Id, RpcError),
    /// A notification; for a cancellation with its `requestId`.
    Notification(Option<RawJson>),
    /// A message without a plan: an answer, or an invalid one.
    Other,
}

impl State {
    /// Records a message and decides how it is answered.
    pub(crate) fn receive(&self, bytes: bytes::Bytes, headers: &HeaderMap) -> Incoming {
        match Message::from_client(bytes) {
            Ok(Message::Request(request)) => self.request(&request, headers),
            Ok(Message::Notification(Notification { method, params })) => {
                let cancelled = params
                    .as_ref()
                    .filter(|_| method == method::CANCELLED)
                    .and_then(|params| params.get("requestId"));
                self.log.add(ReceivedMessage {
                    method,
                    id: None,
                    params,
                    headers: headers.clone(),
                });
                Incoming::Notification(cancelled)
            }
            Ok(Message::Response(_)) | Err(_) => Incoming::Other,
        }
    }

    fn request(&self, request: &Request, headers: &HeaderMap) -> Incoming {
        let params = request.params.as_ref();
        self.log.add(ReceivedMessage {
            method: request.method.clone(),
            id: Some(request.id.as_raw().clone()),
            params: request.params.clone(),
            headers: headers.clone(),
        });
        let meta = params.and_then(mcp_wire::meta);
        let is_modern = meta.is_some_and(|meta| meta.get(meta_key::PROTOCOL_VERSION).is_some());
        let version = params.and_then(|params| params.get("protocolVersion")?.string());
        if let Some(error) = self.refusal(&request.method, is_modern, version.as_deref()) {
            return Incoming::Refused(request.id.clone(), error);
        }
        Incoming::Request(Arc::new(self.plan(request)))
    }

    pub(crate) fn plan(&self, request: &Request) -> ReplyPlan {
        let params = request.params.as_ref();
        let entry = self.entry(&request.method, params);
        let rule = self.rule(&request.method);
        let (call, rule_call) = Round::from_params(params).map_or_else(
            || {
                (
                    entry.as_ref().map_or(0, |entry| entry.script.take()),
                    rule.map_or(0, Script::take),
                )
            },
            |round| (round.call, round.rule),
        );
        let inner = entry.as_ref().map(|entry| entry.script.reply(call));
        let inner = inner.unwrap_or_default();
        let mut reply = match rule {
            Some(rule) => rule.reply(rule_call).over(&inner),
            None => inner,
        };
        if asks(&reply, params) {
            reply.behave();
        }
        ReplyPlan {
            id: request.id.clone(),
            method: request.method.clone(),
            reply,
            entry,
            call: if call == 0 { rule_call } else { call },
            rule: rule_call,
            is_modern_only: self.era == Some(Era::Modern),
            is_served: AtomicBool::new(false),
        }
    }
}

/// Returns `true` if a modern request will be answered with questions, which never misbehave.
fn asks(reply: &MockReply, params: Option<&RawJson>) -> bool {
    let is_modern = params
        .and_then(mcp_wire::meta)
        .is_some_and(|meta| meta.get(meta_key::PROTOCOL_VERSION).is_some());
    let round = Round::from_params(params);
    let first = round.as_ref().map_or(0, |round| round.step);
    let given = params.and_then(|params| params.get("inputResponses"));
    let has = |key: &str| {
        let before = round
            .as_ref()
            .is_some_and(|round| round.answers.get(key).is_some());
        before || given.as_ref().is_some_and(|given| given.get(key).is_some())
    };
    let mut steps = reply.steps.iter().skip(first);
    is_modern && steps.any(|step| matches!(step, Step::Ask(question) if !has(&question.key)))
}

/// Methods that `mcp-server` answers without the service, so that a scripted answer has to replace its answer.
const HOUSEKEEPING: [&str; 4] = [
    method::INITIALIZE,
    method::DISCOVER,
    method::PING,
    method::LOGGING_SET_LEVEL,
];

impl ReplyPlan {
    pub(crate) fn serve(&self) {
        self.is_served.store(true, Ordering::Relaxed);
    }

    fn is_served(&self) -> bool {
        self.is_served.load(Ordering::Relaxed)
    }

    pub(crate) fn never_answers(&self) -> bool {
        matches!(self.reply.outcome, ReplyOutcome::Never)
    }

    /// Returns the delay of an answer that the service did not make.
    pub(crate) fn delay(&self) -> Duration {
        if self.is_served() {
            return Duration::ZERO;
        }
        self.reply.delays()
    }

    /// Returns `true` if a scripted answer replaces a subscription.
    pub(crate) fn opens_nothing(&self) -> bool {
        let is_scripted = matches!(
            self.reply.outcome,
            ReplyOutcome::Result(_) | ReplyOutcome::Error(_) | ReplyOutcome::Never
        );
        self.method == method::SUBSCRIPTIONS_LISTEN && is_scripted
    }

    /// Returns the frame to send: a scripted one if it replaces the answer of the protocol's housekeeping.
    pub(crate) fn frame(&self, frame: Vec<u8>) -> Vec<u8> {
        let is_housekeeping = HOUSEKEEPING.contains(&&*self.method) || self.opens_nothing();
        if self.is_served() || !is_housekeeping {
            return frame;
        }
        match &self.reply.outcome {
            ReplyOutcome::Result(result) => mcp_wire::result(&self.id, result),
            ReplyOutcome::Error(error) => mcp_wire::error(Some(self.id.as_raw()), error),
            _ if self.is_modern_only && self.method == method::DISCOVER => narrowed(&self.id, frame),
            _ => frame,
        }
    }

    /// Returns `true` if the answer is sent unchanged.
    pub(crate) fn is_harmless(&self) -> bool {
        self.is_served() && self.reply.misbehaviors.is_empty() && !self.never_answers()
    }

    pub(crate) fn misbehaviors(&self) -> &[Misbehavior] {
        &self.reply.misbehaviors
    }

    pub(crate) fn misbehaves(&self, how: &Misbehavior) -> bool {
        self.reply.misbehaviors.contains(how)
    }

    /// Returns the `requestState` of a modern round of questions.
    pub(crate) fn round(&self, step: usize, answers: &RawJson) -> String {
        let round = RawJson::from_members(&[
            ("call", RawJson::from(self.call as u64)),
            ("rule", RawJson::from(self.rule as u64)),
            ("step", RawJson::from(step as u64)),
            ("answers", answers.clone()),
        ]);
        round.to_string()
    }
}

/// Returns a request that replaces a subscription that must not be opened: one that the inner server answers at once.
pub(crate) fn instead_of_listening(request: &bytes::Bytes) -> bytes::Bytes {
    let text = String::from_utf8_lossy(request).into_owned();
    let asked = RawJson::parse(text).and_then(|request| {
        let method = RawJson::from(method::DISCOVER);
        request.with_members(&[("method", method)])
    });
    asked.map_or_else(|_| request.clone(), |asked| asked.to_string().into())
}

/// Narrows the answer of discovery to one revision.
fn narrowed(id: &Id, frame: Vec<u8>) -> Vec<u8> {
    let versions = array(&[RawJson::from(Revision::LATEST.as_str())]);
    let result = RawJson::parse(frame.clone())
        .ok()
        .and_then(|message| message.get("result"))
        .and_then(|result| result.with_members(&[("supportedVersions", versions)]).ok());
    result.map_or(frame, |result| mcp_wire::result(id, &result))
}

/// State of an earlier round, as the client returns it in `requestState`. It is not sealed: a mock trusts its clients.
pub(crate) struct Round {
    call: usize,
    rule: usize,
    /// Index of the step whose question was asked.
    pub(crate) step: usize,
    pub(crate) answers: RawJson,
}

impl Round {
    pub(crate) fn from_params(params: Option<&RawJson>) -> Option<Self> {
        let state = params?.get("requestState")?.string()?;
        let state = RawJson::parse(state).ok()?;
        let number = |key| state.get(key)?.to::<usize>().ok();
        Some(Self {
            call: number("call")?,
            rule: number("rule")?,
            step: number("step")?,
            answers: state
                .get("answers")
                .filter(|answers| answers.kind() == JsonKind::Object)?,
        })
    }
}

/// Plans of a connection's unanswered requests, by id.
#[derive(Debug, Default)]
pub(crate) struct PendingPlans(Mutex<HashMap<RawJson, Arc<ReplyPlan>>>);

impl PendingPlans {
    pub(crate) fn put(&self, plan: Arc<ReplyPlan>) {
        self.0.lock().insert(plan.id.as_raw().clone(), plan);
    }

    pub(crate) fn get(&self, id: &Id) -> Option<Arc<ReplyPlan>> {
        self.0.lock().get(id.as_raw()).cloned()
    }

    pub(crate) fn take(&self, id: &RawJson) -> Option<Arc<ReplyPlan>> {
        self.0.lock().remove(id)
    }
}
