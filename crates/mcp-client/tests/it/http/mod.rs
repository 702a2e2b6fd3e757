//! Tests of the transports over HTTP.

mod requests;
mod sse;
#[cfg(feature = "websocket")]
mod websocket;

pub(crate) use self::requests::{about, call, serving_in};
