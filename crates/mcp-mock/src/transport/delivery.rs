//! Conversion of an answer into the bytes to send, with its misbehaviors applied.

use std::{sync::LazyLock, time::Duration};

use bytes::Bytes;
use mcp_wire::{method, sse_event};
use raw_json::RawJson;

use crate::{
    Misbehavior, MockReply,
    reply::{mock_reply::ReplyOutcome, plan::ReplyPlan},
};

/// One step of sending an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SendStep {
    Bytes(Bytes),
    Pause(Duration),
    /// Closes the connection, after which nothing follows.
    Close,
}

/// The messages to send for an answer: garbage, the answer, a duplicate.
#[derive(Debug)]
pub(crate) struct Delivery {
    messages: Vec<Vec<u8>>,
    /// Index of the answer.
    answer: usize,
    misbehaviors: Vec<Misbehavior>,
}

/// Separation of messages by a transport.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Framing<'a> {
    Line,
    /// A body with one message.
    Whole,
    /// An event of a stream, with its id.
    Event(Option<&'a str>),
}

impl Delivery {
    /// Returns the messages to send for an answer of the protocol.
    pub(crate) fn new(plan: &ReplyPlan, frame: Vec<u8>) -> Self {
        Self::from_frame(plan.id.as_raw(), plan.misbehaviors(), plan.frame(frame))
    }

    /// Returns the messages to send for a notification; `None` if it is dropped.
    pub(crate) fn notification(reply: &MockReply, frame: Vec<u8>) -> Option<Self> {
        let is_sent = !matches!(reply.outcome, ReplyOutcome::Never);
        is_sent.then(|| Self::from_frame(&RawJson::null(), &reply.misbehaviors, frame))
    }

    fn from_frame(id: &RawJson, misbehaviors: &[Misbehavior], frame: Vec<u8>) -> Self {
        let answer = misbehaviors
            .iter()
            .fold(frame, |frame, misbehavior| changed(id, frame, misbehavior));
        let mut delivery = Self {
            messages: Vec::new(),
            answer: 0,
            misbehaviors: misbehaviors.to_vec(),
        };
        for misbehavior in misbehaviors {
            match misbehavior {
                Misbehavior::GarbageBefore(text) => delivery.messages.push(text.clone().into_bytes()),
                Misbehavior::Flood(count) => {
                    let noise = std::iter::repeat_with(|| NOISE.clone());
                    delivery.messages.extend(noise.take(*count));
                }
                _ => {}
            }
        }
        delivery.answer = delivery.messages.len();
        delivery.messages.push(answer);
        for misbehavior in misbehaviors {
            match misbehavior {
                Misbehavior::Twice => {
                    let again = delivery.messages[delivery.answer].clone();
                    delivery.messages.push(again);
                }
                Misbehavior::GarbageAfter(text) => delivery.messages.push(text.clone().into_bytes()),
                _ => {}
            }
        }
        delivery
    }

    /// Returns `true` if it can be sent as events only.
    pub(crate) fn needs_events(&self) -> bool {
        let is_event = |misbehavior: &Misbehavior| matches!(misbehavior, Misbehavior::Event(_));
        self.messages.len() > 1 || self.misbehaviors.iter().any(is_event)
    }

    /// Returns the steps of sending, each message framed for the transport.
    pub(crate) fn pieces(self, framing: Framing<'_>) -> Vec<SendStep> {
        let mut pieces = Vec::new();
        let written = self.event().map(str::to_owned);
        // Adjacent messages are joined: a flood of small messages is one write.
        let mut together = Vec::new();
        for (index, message) in self.messages.into_iter().enumerate() {
            if index != self.answer {
                together.extend(framing.frame(message));
                continue;
            }
            let bytes = match (framing, &written) {
                (Framing::Event(_), Some(text)) => event(text, &message),
                _ => framing.frame(message),
            };
            pieces.push(SendStep::Bytes(std::mem::take(&mut together).into()));
            let mut answer = vec![SendStep::Bytes(bytes.into())];
            for misbehavior in &self.misbehaviors {
                answer = delivered(answer, misbehavior);
            }
            pieces.extend(answer);
        }
        pieces.push(SendStep::Bytes(together.into()));
        pieces.retain(|piece| !matches!(piece, SendStep::Bytes(bytes) if bytes.is_empty()));
        if let Some(end) = pieces.iter().position(|piece| *piece == SendStep::Close) {
            pieces.truncate(end + 1);
        }
        pieces
    }

    /// Returns the text that replaces the answer's event.
    fn event(&self) -> Option<&str> {
        self.misbehaviors
            .iter()
            .find_map(|misbehavior| match misbehavior {
                Misbehavior::Event(text) => Some(text.as_str()),
                _ => None,
            })
    }
}

impl Framing<'_> {
    pub(crate) fn frame(self, mut message: Vec<u8>) -> Vec<u8> {
        match self {
            Self::Line => {
                message.push(b'\n');
                message
            }
            Self::Whole => message,
            Self::Event(id) => sse_event(&message, None, id),
        }
    }
}

/// Returns the bytes of a fully scripted event, with the message inserted.
fn event(text: &str, message: &[u8]) -> Vec<u8> {
    let parts: Vec<&[u8]> = text.split("{data}").map(str::as_bytes).collect();
    parts.join(message)
}

/// A notification that belongs to no request.
static NOISE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let params = [
        ("progressToken", RawJson::from("nobody's")),
        ("progress", RawJson::from(1_u64)),
    ];
    mcp_wire::notification(method::PROGRESS, Some(&RawJson::from_members(&params)))
});

/// An id that no request has.
const WRONG_ID: u64 = 987_654_321;

/// Applies a misbehavior that changes the message.
fn changed(id: &RawJson, frame: Vec<u8>, misbehavior: &Misbehavior) -> Vec<u8> {
    match misbehavior {
        Misbehavior::WrongId => with(&frame, "id", RawJson::from(WRONG_ID)),
        Misbehavior::StringId => with(&frame, "id", RawJson::from(id.as_str().trim_matches('"'))),
        Misbehavior::WithoutId => match RawJson::parse(frame.clone()) {
            Ok(message) => text_of(message.without_members(&["id"]), frame),
            Err(_) => frame,
        },
        Misbehavior::Raw(text) => text.replace("{id}", id.as_str()).into_bytes(),
        Misbehavior::Oversize(length) => padded(&frame, *length),
        Misbehavior::InvalidUtf8 => match frame.strip_prefix(b"{") {
            Some(rest) => [&b"{\"padding\":\"\xff\xfe\","[..], rest].concat(),
            None => frame,
        },
        _ => frame,
    }
}

/// Pads the result of an answer, so that limits on the result apply.
fn padded(frame: &[u8], length: usize) -> Vec<u8> {
    let padding = RawJson::from("x".repeat(length.saturating_sub(frame.len())).as_str());
    let result = RawJson::parse(frame.to_vec())
        .ok()
        .and_then(|message| message.get("result"))
        .and_then(|result| result.with_members(&[("padding", padding.clone())]).ok());
    match result {
        Some(result) => with(frame, "result", result),
        None => with(frame, "padding", padding),
    }
}

fn with(frame: &[u8], key: &str, value: RawJson) -> Vec<u8> {
    match RawJson::parse(frame.to_vec()) {
        Ok(message) => text_of(message.with_members(&[(key, value)]), frame.to_vec()),
        Err(_) => frame.to_vec(),
    }
}

fn text_of(message: Result<RawJson, raw_json::JsonError>, otherwise: Vec<u8>) -> Vec<u8> {
    message.map_or(otherwise, |message| message.as_bytes().to_vec())
}

/// Applies a misbehavior that changes the delivery.
fn delivered(pieces: Vec<SendStep>, misbehavior: &Misbehavior) -> Vec<SendStep> {
    match misbehavior {
        Misbehavior::Close => vec![SendStep::Close],
        Misbehavior::Cut(at) => split(pieces, |bytes| {
            let at = at.unwrap_or(bytes.len() / 2).min(bytes.len());
            vec![SendStep::Bytes(bytes.slice(..at)), SendStep::Close]
        }),
        Misbehavior::PauseHalfway(time) => split(pieces, |bytes| {
            let half = bytes.len() / 2;
            let (first, second) = (bytes.slice(..half), bytes.slice(half..));
            vec![
                SendStep::Bytes(first),
                SendStep::Pause(*time),
                SendStep::Bytes(second),
            ]
        }),
        Misbehavior::Drip { bytes: size, every } => split(pieces, |bytes| {
            let drops = bytes.chunks((*size).max(1));
            let drops = drops.map(|drop| SendStep::Bytes(bytes.slice_ref(drop)));
            drops.flat_map(|drop| [drop, SendStep::Pause(*every)]).collect()
        }),
        _ => pieces,
    }
}

fn split(pieces: Vec<SendStep>, how: impl Fn(&Bytes) -> Vec<SendStep>) -> Vec<SendStep> {
    let split = pieces.into_iter().flat_map(|piece| match piece {
        SendStep::Bytes(bytes) => how(&bytes),
        other => vec![other],
    });
    split.collect()
}
