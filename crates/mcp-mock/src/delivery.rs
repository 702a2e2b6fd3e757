//! From an answer to the bytes that are sent, as its misbehaviours will have it.

use std::{sync::LazyLock, time::Duration};

use bytes::Bytes;
use mcp_wire::{method, sse_event};
use raw_json::RawJson;
use serde_json::json;

use crate::{Misbehavior, MockReply, plan::Plan, reply::Outcome};

/// One step of sending an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Bytes(Bytes),
    Pause(Duration),
    /// The connection is closed, and nothing follows.
    Close,
}

/// The messages that an answer is sent as: garbage, the answer, another one.
#[derive(Debug)]
pub(crate) struct Delivery {
    messages: Vec<Vec<u8>>,
    /// Which of them is the answer.
    answer: usize,
    misbehaviours: Vec<Misbehavior>,
}

/// How a transport sets messages apart.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Framing<'a> {
    Line,
    /// There is one message only.
    Whole,
    /// An event of a stream, and its id.
    Event(Option<&'a str>),
}

impl Delivery {
    /// What is sent for an answer of the protocol.
    pub(crate) fn new(plan: &Plan, frame: Vec<u8>) -> Self {
        Self::of(plan.id.as_raw(), plan.misbehaviours(), plan.frame(frame))
    }

    /// What is sent for a notification; nothing when it is left out.
    pub(crate) fn notification(reply: &MockReply, frame: Vec<u8>) -> Option<Self> {
        let is_sent = !matches!(reply.outcome, Outcome::Never);
        is_sent.then(|| Self::of(&RawJson::null(), &reply.misbehaviours, frame))
    }

    fn of(id: &RawJson, misbehaviours: &[Misbehavior], frame: Vec<u8>) -> Self {
        let answer = misbehaviours
            .iter()
            .fold(frame, |frame, misbehaviour| changed(id, frame, misbehaviour));
        let mut delivery = Self {
            messages: Vec::new(),
            answer: 0,
            misbehaviours: misbehaviours.to_vec(),
        };
        for misbehaviour in misbehaviours {
            match misbehaviour {
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
        for misbehaviour in misbehaviours {
            match misbehaviour {
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

    /// Whether it can be sent as events only.
    pub(crate) fn needs_events(&self) -> bool {
        let is_event = |misbehaviour: &Misbehavior| matches!(misbehaviour, Misbehavior::Event(_));
        self.messages.len() > 1 || self.misbehaviours.iter().any(is_event)
    }

    /// The bytes to send, each message framed as the transport wants it.
    pub(crate) fn pieces(self, framing: Framing<'_>) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let written = self.event().map(str::to_owned);
        // Neighbours are sent together: a flood of small messages is one write.
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
            pieces.push(Piece::Bytes(std::mem::take(&mut together).into()));
            let mut answer = vec![Piece::Bytes(bytes.into())];
            for misbehaviour in &self.misbehaviours {
                answer = delivered(answer, misbehaviour);
            }
            pieces.extend(answer);
        }
        pieces.push(Piece::Bytes(together.into()));
        pieces.retain(|piece| !matches!(piece, Piece::Bytes(bytes) if bytes.is_empty()));
        if let Some(end) = pieces.iter().position(|piece| *piece == Piece::Close) {
            pieces.truncate(end + 1);
        }
        pieces
    }

    /// What stands in place of the answer's event.
    fn event(&self) -> Option<&str> {
        self.misbehaviours
            .iter()
            .find_map(|misbehaviour| match misbehaviour {
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

/// The bytes of an event that is written in full, with the message where it stands for it.
fn event(text: &str, message: &[u8]) -> Vec<u8> {
    let parts: Vec<&[u8]> = text.split("{data}").map(str::as_bytes).collect();
    parts.join(message)
}

/// A notification that belongs to nothing.
static NOISE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let params = json!({"progressToken": "nobody's", "progress": 1});
    mcp_wire::notification(method::PROGRESS, Some(&params.into()))
});

/// The id that nobody asks with.
const WRONG_ID: u64 = 987_654_321;

/// The answer after what changes the message itself.
fn changed(id: &RawJson, frame: Vec<u8>, misbehaviour: &Misbehavior) -> Vec<u8> {
    match misbehaviour {
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

/// The answer with padding in its result, which is where it counts.
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

/// The answer's bytes after what changes how they are sent.
fn delivered(pieces: Vec<Piece>, misbehaviour: &Misbehavior) -> Vec<Piece> {
    match misbehaviour {
        Misbehavior::Close => vec![Piece::Close],
        Misbehavior::Cut(at) => split(pieces, |bytes| {
            let at = at.unwrap_or(bytes.len() / 2).min(bytes.len());
            vec![Piece::Bytes(bytes.slice(..at)), Piece::Close]
        }),
        Misbehavior::PauseHalfway(time) => split(pieces, |bytes| {
            let half = bytes.len() / 2;
            let (first, second) = (bytes.slice(..half), bytes.slice(half..));
            vec![Piece::Bytes(first), Piece::Pause(*time), Piece::Bytes(second)]
        }),
        Misbehavior::Drip { bytes: size, every } => split(pieces, |bytes| {
            let drops = bytes.chunks((*size).max(1));
            let drops = drops.map(|drop| Piece::Bytes(bytes.slice_ref(drop)));
            drops.flat_map(|drop| [drop, Piece::Pause(*every)]).collect()
        }),
        _ => pieces,
    }
}

fn split(pieces: Vec<Piece>, how: impl Fn(&Bytes) -> Vec<Piece>) -> Vec<Piece> {
    let split = pieces.into_iter().flat_map(|piece| match piece {
        Piece::Bytes(bytes) => how(&bytes),
        other => vec![other],
    });
    split.collect()
}
