//! JSON-RPC messages, read into an envelope around payloads that stay as they were written.

mod batch;
mod head;
mod id;
mod look_alike;
mod message;
mod parse_error;
mod rpc_error;

#[cfg(feature = "strict")]
pub use self::batch::split_batch;
pub use self::{
    batch::{MAX_BATCH, split_server_batch},
    head::{has_method_in_head, id_in_head},
    id::{Id, integer_id},
    message::{Message, Notification, Request, Response},
    parse_error::{ParseError, ParseErrorKind},
    rpc_error::{RpcError, code},
};
