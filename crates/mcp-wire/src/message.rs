use bytes::Bytes;
use raw_json::{JsonKind, JsonLimits, IndexedJson, RawJson, TextPart};

use crate::{Id, ParseError, ParseErrorKind, RpcError, look_alike};

/// One JSON-RPC message, its payloads as slices of the bytes that came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Wants an answer.
    Request(Request),
    /// Wants none.
    Notification(Notification),
    /// Is one.
    Response(Response),
}

/// A message that wants an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What the answer must carry.
    pub id: Id,
    /// What is asked for.
    pub method: String,
    /// The parameters, an object.
    pub params: Option<RawJson>,
}

/// A message that wants no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// What it is about.
    pub method: String,
    /// The parameters, an object.
    pub params: Option<RawJson>,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The id of the request as it was echoed, see [`integer`](crate::integer); nothing when it is missing or null.
    pub id: Option<RawJson>,
    /// What came of the request. A result of `null` is a result here.
    pub outcome: Result<RawJson, RpcError>,
}

impl Message {
    /// Reads a message of a client, strictly: what another reader could understand otherwise is refused.
    ///
    /// No key stands twice at any depth, none of the message, of `params` or of `_meta` there is a look-alike of one with a meaning
    /// (`Name`, `arguments` with a long s, `name` and a NUL), `jsonrpc` is there, an id is an integer or a string of at most 1 KiB.
    ///
    /// # Errors
    /// When the bytes are no message; the error knows the id to answer to, if there is one.
    pub fn from_client(bytes: impl Into<Bytes>) -> Result<Self, ParseError> {
        let bytes = bytes.into();
        match IndexedJson::parse(bytes.clone(), JsonLimits::STRICT) {
            Ok(text) => read(&text, true),
            Err(error) => Err(ParseError::json(error).about(id_of(bytes))),
        }
    }

    /// Reads a message of a server, leniently where real servers are loose and no harm can come of it: `jsonrpc`
    /// may be missing, and an answer's id may have any form or be missing.
    ///
    /// # Errors
    /// When the bytes are no message; the error knows the id of the call that they answer, if there is one.
    pub fn from_server(bytes: impl Into<Bytes>) -> Result<Self, ParseError> {
        match IndexedJson::parse(bytes, JsonLimits::RELAY) {
            Ok(text) => read(&text, false),
            Err(error) => Err(ParseError::json(error)),
        }
    }
}

/// How many messages a batch may hold.
pub const MAX_BATCH: usize = 64;

/// Takes a batch of a client apart into the texts of its messages, for [`Message::from_client`] to read: 2025-03-26 lets
/// both sides send arrays, and no other revision does.
///
/// # Errors
/// When the bytes are no array of at most [`MAX_BATCH`] values, or something in it is what the strict reader refuses
/// wherever it stands, such as a key that stands twice.
pub fn batch(bytes: impl Into<Bytes>) -> Result<Vec<Bytes>, ParseError> {
    split(bytes.into(), JsonLimits::STRICT)
}

/// Takes a batch of a server apart as [`batch`] does with a client's, for [`Message::from_server`] to read.
///
/// # Errors
/// When the bytes are no array of at most [`MAX_BATCH`] values, or nested too deep.
pub fn batch_from_server(bytes: impl Into<Bytes>) -> Result<Vec<Bytes>, ParseError> {
    split(bytes.into(), JsonLimits::RELAY)
}

fn split(bytes: Bytes, limits: JsonLimits) -> Result<Vec<Bytes>, ParseError> {
    let text = IndexedJson::parse(bytes, limits).map_err(ParseError::json)?;
    let text = text.raw();
    if text.kind() != JsonKind::Array {
        return Err(ParseError::new(ParseErrorKind::NotAnObject));
    }
    let messages: Vec<Bytes> = text
        .items()
        .take(MAX_BATCH + 1)
        .map(|message| message.as_bytes().clone())
        .collect();
    match messages.len() {
        1..=MAX_BATCH => Ok(messages),
        _ => Err(ParseError::new(ParseErrorKind::BatchLength)),
    }
}

/// The id in a text that breaks a limit but is JSON all the same.
fn id_of(bytes: Bytes) -> Option<RawJson> {
    let text = RawJson::parse_within(
        bytes,
        JsonLimits {
            depth: 1 << 20,
            ..JsonLimits::RELAY
        },
    )
    .ok()?;
    let mut ids = text
        .members()
        .filter(|(key, _)| key == "id")
        .map(|(_, value)| value);
    ids.next().filter(|_| ids.next().is_none())
}

/// The members of a message that have a meaning.
#[derive(Default)]
struct Envelope<'a> {
    version: Option<TextPart<'a>>,
    id: Option<TextPart<'a>>,
    method: Option<TextPart<'a>>,
    params: Option<TextPart<'a>>,
    result: Option<TextPart<'a>>,
    error: Option<TextPart<'a>>,
}

const KEYS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

impl<'a> Envelope<'a> {
    fn read(text: &'a IndexedJson) -> Result<Self, ParseError> {
        let mut envelope = Self::default();
        let mut fault = None;
        for (key, value) in text.parts() {
            let member = match &*key {
                "jsonrpc" => &mut envelope.version,
                "id" => &mut envelope.id,
                "method" => &mut envelope.method,
                "params" => &mut envelope.params,
                "result" => &mut envelope.result,
                "error" => &mut envelope.error,
                other => {
                    // Other unknown members pass: they are nothing that this envelope hands on.
                    if is_case_variant(other) {
                        fault.get_or_insert(ParseErrorKind::LookAlikeKey(key.into_owned()));
                    }
                    continue;
                }
            };
            if member.replace(value).is_some() {
                fault.get_or_insert(ParseErrorKind::DuplicateKey(key.into_owned()));
            }
        }
        match fault {
            Some(kind) => Err(ParseError::new(kind).about(envelope.id.map(|id| id.to_raw()))),
            None => Ok(envelope),
        }
    }
}

/// Whether some readers take a key that has no meaning for one that has.
#[cold]
fn is_case_variant(key: &str) -> bool {
    look_alike::is_look_alike(key, &KEYS)
}

fn read(text: &IndexedJson, strict: bool) -> Result<Message, ParseError> {
    match text.raw().kind() {
        JsonKind::Object => {}
        JsonKind::Array => return Err(ParseError::new(ParseErrorKind::Batch)),
        _ => return Err(ParseError::new(ParseErrorKind::NotAnObject)),
    }
    let Envelope {
        version,
        id,
        method,
        params,
        result,
        error,
    } = Envelope::read(text)?;
    let fault = |kind| ParseError::new(kind).about(id.map(|id| id.to_raw()));
    if strict && version.is_none_or(|version| version.as_str() != "\"2.0\"") {
        return Err(fault(ParseErrorKind::Version));
    }
    match (method, result, error) {
        (Some(method), None, None) => {
            let method = method.text().filter(|method| method.len() <= 256);
            let method = method.ok_or_else(|| fault(ParseErrorKind::Method))?.into_owned();
            // Some servers write `"params": null` for none.
            let params = params.filter(|params| strict || params.kind() != JsonKind::Null);
            if params.is_some_and(|params| params.kind() != JsonKind::Object) {
                return Err(fault(ParseErrorKind::Params));
            }
            let params = params.map(|params| params.to_raw());
            if strict && let Some(key) = params.as_ref().and_then(look_alike::in_params) {
                return Err(fault(ParseErrorKind::LookAlikeKey(key)));
            }
            let Some(id) = id else {
                return Ok(Message::Notification(Notification { method, params }));
            };
            let id = Id::new(&id.to_raw()).ok_or_else(|| fault(ParseErrorKind::Id))?;
            Ok(Message::Request(Request { id, method, params }))
        }
        (None, Some(result), None) => Ok(response(id, Ok(result.to_raw()))),
        // Some servers write both, one of them null.
        (None, Some(result), Some(error)) if !strict && error.kind() == JsonKind::Null => {
            Ok(response(id, Ok(result.to_raw())))
        }
        (None, Some(result), Some(error)) if !strict && result.kind() == JsonKind::Null => {
            Ok(response(id, Err(RpcError::from_raw(&error.to_raw()))))
        }
        (None, None, Some(error)) => Ok(response(id, Err(RpcError::from_raw(&error.to_raw())))),
        (None, None, None) => Err(fault(ParseErrorKind::Empty)),
        _ => Err(fault(ParseErrorKind::Ambiguous)),
    }
}

fn response(id: Option<TextPart<'_>>, outcome: Result<RawJson, RpcError>) -> Message {
    Message::Response(Response {
        id: id.filter(|id| id.kind() != JsonKind::Null).map(|id| id.to_raw()),
        outcome,
    })
}
