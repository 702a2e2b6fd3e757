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
use serde_json::json;

use crate::{
    Misbehavior, MockReply,
    log::Received,
    offer::Entry,
    reply::{Outcome, Step},
    script::Script,
    state::State,
};

/// How one request is answered, decided when it arrives.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) id: Id,
    pub(crate) method: String,
    pub(crate) reply: MockReply,
    pub(crate) entry: Option<Arc<Entry>>,
    /// The number of the request among those about the same, from one.
    pub(crate) call: usize,
    /// The number of the request among those of its method, if there are replies for the method.
    rule: usize,
    /// Whether the one modern revision is all that discovery may name.
    is_modern_only: bool,
    /// Whether the service has answered; it never sees the protocol's own housekeeping.
    is_served: AtomicBool,
}

/// What becomes of a message that has arrived.
#[derive(Debug)]
pub(crate) enum Intake {
    /// A request that is answered as planned.
    Request(Arc<Plan>),
    /// A request that is answered with an error.
    Refused(Id, RpcError),
    /// A notification of this kind; `requestId` says what it cancels.
    Notification(Option<RawJson>),
    /// Nothing that is planned for: an answer, or no message.
    Other,
}

impl State {
    /// Takes note of a message and decides how it is answered.
    pub(crate) fn take_in(&self, bytes: bytes::Bytes, headers: &HeaderMap) -> Intake {
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
                Intake::Notification(cancelled)
            }
            Ok(Message::Response(_)) | Err(_) => Intake::Other,
        }
    }

    fn request(&self, request: &Request, headers: &HeaderMap) -> Intake {
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
            return Intake::Refused(request.id.clone(), error);
        }
        Intake::Request(Arc::new(self.plan(request)))
    }

    pub(crate) fn plan(&self, request: &Request) -> Plan {
        let params = request.params.as_ref();
        let entry = self.entry(&request.method, params);
        let rule = self.rule(&request.method);
        let (call, rule_call) = Round::of(params).map_or_else(
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
        Plan {
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

/// Whether a modern request will be answered with questions, which are not the answer that may misbehave.
fn asks(reply: &MockReply, params: Option<&RawJson>) -> bool {
    let is_modern = params
        .and_then(mcp_wire::meta)
        .is_some_and(|meta| meta.get(meta_key::PROTOCOL_VERSION).is_some());
    let round = Round::of(params);
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

/// What is answered without the service, so that a scripted answer takes the place of another one.
const HOUSEKEEPING: [&str; 4] = [
    method::INITIALIZE,
    method::DISCOVER,
    method::PING,
    method::LOGGING_SET_LEVEL,
];

impl Plan {
    pub(crate) fn serve(&self) {
        self.is_served.store(true, Ordering::Relaxed);
    }

    fn is_served(&self) -> bool {
        self.is_served.load(Ordering::Relaxed)
    }

    pub(crate) fn never_answers(&self) -> bool {
        matches!(self.reply.outcome, Outcome::Never)
    }

    /// How long to wait before an answer that the service had no hand in.
    pub(crate) fn delay(&self) -> Duration {
        if self.is_served() {
            return Duration::ZERO;
        }
        self.reply.delays()
    }

    /// Whether a scripted answer takes the place of a subscription, which would be opened otherwise.
    pub(crate) fn opens_nothing(&self) -> bool {
        let is_scripted = matches!(
            self.reply.outcome,
            Outcome::Result(_) | Outcome::Error(_) | Outcome::Never
        );
        self.method == method::SUBSCRIPTIONS_LISTEN && is_scripted
    }

    /// The answer as it is to be sent: another one where the protocol's own housekeeping was scripted.
    pub(crate) fn frame(&self, frame: Vec<u8>) -> Vec<u8> {
        let is_housekeeping = HOUSEKEEPING.contains(&&*self.method) || self.opens_nothing();
        if self.is_served() || !is_housekeeping {
            return frame;
        }
        match &self.reply.outcome {
            Outcome::Result(result) => mcp_wire::result(&self.id, result),
            Outcome::Error(error) => mcp_wire::error(Some(self.id.as_raw()), error),
            _ if self.is_modern_only && self.method == method::DISCOVER => narrowed(&self.id, frame),
            _ => frame,
        }
    }

    /// Whether the answer passes as it is.
    pub(crate) fn is_harmless(&self) -> bool {
        self.is_served() && self.reply.misbehaviours.is_empty() && !self.never_answers()
    }

    pub(crate) fn misbehaviours(&self) -> &[Misbehavior] {
        &self.reply.misbehaviours
    }

    pub(crate) fn misbehaves(&self, how: &Misbehavior) -> bool {
        self.reply.misbehaviours.contains(how)
    }

    /// The round that a client of the modern era gives back with its answers.
    pub(crate) fn round(&self, step: usize, answers: &RawJson) -> String {
        let round = json!({"call": self.call, "rule": self.rule, "step": step});
        let round = RawJson::from(round).with_members(&[("answers", answers.clone())]);
        round.expect("it is an object").to_string()
    }
}

/// What the server behind is asked in the place of a subscription that is not to be opened: something that it answers at once.
pub(crate) fn instead_of_listening(request: &bytes::Bytes) -> bytes::Bytes {
    let text = String::from_utf8_lossy(request).into_owned();
    let asked = RawJson::parse(text).and_then(|request| {
        let method = RawJson::from(method::DISCOVER);
        request.with_members(&[("method", method)])
    });
    asked.map_or_else(|_| request.clone(), |asked| asked.to_string().into())
}

/// The answer to discovery of a server that speaks one revision only.
fn narrowed(id: &Id, frame: Vec<u8>) -> Vec<u8> {
    let versions = json!([Revision::LATEST.as_str()]);
    let result = RawJson::parse(frame.clone())
        .ok()
        .and_then(|message| message.get("result"))
        .and_then(|result| {
            result
                .with_members(&[("supportedVersions", versions.into())])
                .ok()
        });
    result.map_or(frame, |result| mcp_wire::result(id, &result))
}

/// What the state that a client gives back says of the round before. A mock trusts its clients: it is not sealed.
pub(crate) struct Round {
    call: usize,
    rule: usize,
    /// The step whose question was asked.
    pub(crate) step: usize,
    pub(crate) answers: RawJson,
}

impl Round {
    pub(crate) fn of(params: Option<&RawJson>) -> Option<Self> {
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

/// The plans of a connection's requests that are not answered yet, by id.
#[derive(Debug, Default)]
pub(crate) struct Plans(Mutex<HashMap<RawJson, Arc<Plan>>>);

impl Plans {
    pub(crate) fn put(&self, plan: Arc<Plan>) {
        self.0.lock().insert(plan.id.as_raw().clone(), plan);
    }

    pub(crate) fn get(&self, id: &Id) -> Option<Arc<Plan>> {
        self.0.lock().get(id.as_raw()).cloned()
    }

    pub(crate) fn take(&self, id: &RawJson) -> Option<Arc<Plan>> {
        self.0.lock().remove(id)
    }
}
