//! JSON-RPC and MCP framing of both protocol eras, lossless and without I/O.
//!
//! A message is read once into a strict envelope ([`Message`]) whose payloads are slices of the received bytes; writers
//! ([`request`], [`result`], ..) put a payload into a frame without reading it. [`LineDecoder`] frames the stdio
//! transport, [`SseDecoder`] the streams of the HTTP transport. Both take bytes in any chunks, and keep a connection
//! alive across messages that are too large or not JSON.
//!
//! # Examples
//!
//! ```
//! use mcp_wire::{Message, method};
//!
//! let message = Message::from_client(r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#)?;
//! let Message::Request(request) = message else { unreachable!() };
//! assert_eq!(request.method, method::TOOLS_LIST);
//! let answer = mcp_wire::result(&request.id, &raw_json::RawJson::object());
//! assert_eq!(answer, br#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
//! # Ok::<(), mcp_wire::ParseError>(())
//! ```
//!
//! The example `relay` carries messages from one transport to the other.
//!
//! # Strict and lenient
//!
//! Messages of a client are read strictly ([`Message::from_client`]): if two readers understood a message differently, a
//! policy would decide about another call than the one that is made. Messages of a server are read leniently
//! ([`Message::from_server`]), since real servers leave members out. Every message that the strict reader accepts, the
//! lenient reader understands in the same way.
//!
//! # Features
//!
//! `strict`, on by default, is the strict reader: [`Message::from_client`] and [`split_batch`]. It needs the tables of
//! Unicode, about 30 packages. A client reads messages of servers only, and can do without.
//!
//! # Memory
//!
//! A decoder holds one message and the bytes that the last read brought beyond it. Of a message beyond the limit it keeps
//! only the head, in which [`id_in_head`] finds the id of the request that was answered.

mod framing;
mod log_level;
mod names;
mod parameters;
mod revision;
mod rpc;

pub use self::{
    framing::{
        Line, LineDecoder, SSE_KEEP_ALIVE, SseDecoder, SseEvent, SseItem, batch_response, end_line, error,
        into_line, notification, request, result, sse_event,
    },
    log_level::{LogLevel, UnknownLogLevel},
    names::{extension, header, meta_key, method, param_key},
    parameters::{
        MirroredParam, MirroredParams, Params, cancelled_params, meta, progress_token, with_meta,
        without_progress_token,
    },
    revision::{Era, Revision, UnknownRevision},
    rpc::{
        Id, MAX_BATCH, Message, Notification, ParseError, ParseErrorKind, Request, Response, RpcError, code,
        has_method_in_head, id_in_head, integer_id, split_server_batch,
    },
};
#[doc(no_inline)]
pub use bytes;
#[doc(no_inline)]
pub use raw_json::{self, RawJson};

#[cfg(feature = "strict")]
pub use self::rpc::split_batch;

#[cfg(all(doctest, feature = "strict"))]
#[doc = include_str!("../README.md")]
struct Readme;
