//! Transports: byte streams, Streamable HTTP and HTTP+SSE, each of which delivers answers as their script asks.

mod delivery;
pub(crate) mod http;
mod legacy_sse;
mod loopback;
pub(crate) mod stdio;

pub use self::http::MockHttp;
