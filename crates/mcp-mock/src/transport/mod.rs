//! Transports: byte streams, Streamable HTTP and HTTP+SSE. Each delivers answers as their scripts ask.

mod delivery;
pub(crate) mod http;
mod legacy_sse;
mod loopback;
pub(crate) mod stdio;

pub use self::http::MockHttp;
