use bytes::Bytes;
use raw_json::{IndexedJson, JsonKind, JsonLimits, RawJson, TextPart};

use super::{Id, ParseError, ParseErrorKind, RpcError, look_alike};

/// One JSON-RPC message, whose payloads are slices of the received bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// Message that expects a response.
    Request(Request),
    /// Message that expects no response.
    Notification(Notification),
    /// Answer to a request.
    Response(Response),
}

/// Message that expects a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Id that the response must carry.
    pub id: Id,
    /// Name of the method.
    pub method: String,
    /// The parameters, an object.
    pub params: Option<RawJson>,
}

/// Message that expects no response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// Name of the method.
    pub method: String,
    /// The parameters, an object.
    pub params: Option<RawJson>,
}

/// Answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// Id of the request as it was echoed, see [`integer_id`](crate::integer_id). `None` if it is missing or null.
    pub id: Option<RawJson>,
    /// Result or error of the request. A result of `null` is a result.
    pub outcome: Result<RawJson, RpcError>,
}

impl Message {
    /// Reads a message of a client strictly: text that another reader could understand differently is refused.
    ///
    /// Duplicate keys are refused at any depth, and so are look-alikes of keys with a meaning in the message, its `params`
    /// and their `_meta` (`Name`, `arguments` with a long s, `name` with a NUL). `jsonrpc` is required, and an id must be an
    /// integer or a string of at most 1 KiB.
    ///
    /// Needs the feature `strict`.
    ///
    /// # Errors
    /// Fails if the bytes are not a message. The error has the id to respond to, if there is one.
    #[cfg(feature = "strict")]
    pub fn from_client(bytes: impl Into<Bytes>) -> Result<Self, ParseError> {
        let bytes = bytes.into();
        match IndexedJson::parse(bytes.clone(), JsonLimits::STRICT) {
            Ok(text) => read(&text, true),
            Err(error) => Err(ParseError::json(error).about(id_of(bytes))),
        }
    }

    /// Reads a message of a server leniently, where real servers deviate from the specification without harm: `jsonrpc` may
    /// be missing, and the id of a response may have any form or be missing. Look-alikes of the keys of the message itself
    /// are refused here, too; without the feature `strict`, that is each unknown key with a character outside of printable
    /// ASCII.
    ///
    /// # Errors
    /// Fails if the bytes are not a message. The error has the id of the call that they answer, if there is one.
    pub fn from_server(bytes: impl Into<Bytes>) -> Result<Self, ParseError> {
        match IndexedJson::parse(bytes, JsonLimits::RELAY) {
            Ok(text) => read(&text, false),
            Err(error) => Err(ParseError::json(error)),
        }
    }
}

/// Finds the id in a text that exceeds a limit but is still JSON.
#[cfg(feature = "strict")]
fn id_of(bytes: Bytes) -> Option<RawJson> {
    let text = RawJson::parse_within(bytes, JsonLimits::RELAY.with_depth(1 << 20)).ok()?;
    let mut ids = text
        .members()
        .filter(|(key, _)| key == "id")
        .map(|(_, value)| value);
    ids.next().filter(|_| ids.next().is_none())
}

/// Members of a message that have a meaning.
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
                    // Other unknown members are ignored: the envelope does not forward them.
                    if is_look_alike(other) {
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

/// Returns `true` if some readers take a key without a meaning for one with a meaning.
#[cold]
fn is_look_alike(key: &str) -> bool {
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
            #[cfg(feature = "strict")]
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
