//! JSON-RPC and MCP framing of both protocol eras, lossless and without I/O.
//!
//! A message is read once into a strict envelope ([`Message`]) whose payloads are slices of the bytes that came in;
//! writers ([`request`], [`result`], ..) put a payload into a frame without reading it. [`LineDecoder`] frames the
//! stdio transport, [`SseDecoder`] the streams of the HTTP one; both take bytes in any chunks and keep a connection
//! alive across messages that are too large or no JSON at all.
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
//! What a client sends is read strictly ([`Message::from_client`]): two readers of a message must understand the same by
//! it, or a policy decides about something else than what is called. What a server sends is read leniently
//! ([`Message::from_server`]), since real ones leave things out. What the strict reader takes, the lenient one reads
//! alike.
//!
//! # Memory
//!
//! A decoder holds one message and what one read has brought beyond it. Of a message beyond its limit only the head is
//! kept, in which [`id_in_head`] finds the request that it was the answer to.

mod id;
mod lines;
mod log_level;
mod look_alike;
mod message;
mod meta;
mod mirrored;
mod params;
mod parse_error;
mod revision;
mod rpc_error;
mod sse;
mod write;

pub mod extension;
pub mod header;
pub mod meta_key;
pub mod method;
pub mod param_key;

pub use self::{
    id::{Id, id_in_head, integer, method_in_head},
    lines::{Line, LineDecoder},
    log_level::{LogLevel, UnknownLogLevel},
    message::{MAX_BATCH, Message, Notification, Request, Response, batch, batch_from_server},
    meta::{cancelled_params, meta, progress_token, with_meta, without_progress_token},
    mirrored::{MirroredParam, MirroredParams},
    params::Params,
    parse_error::{ParseError, ParseErrorKind},
    revision::{Era, Revision, UnknownRevision},
    rpc_error::{RpcError, code},
    sse::{SSE_KEEP_ALIVE, SseDecoder, SseEvent, SseItem, sse_event},
    write::{batch_answer, end_line, error, into_line, notification, request, result},
};
