//! HTTP+SSE, the transport of revision 2024-11-05.

mod clients;
mod endpoint;

pub(super) use self::clients::{SseClients, SseStream};
