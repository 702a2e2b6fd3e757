//! The transports and pages of the gateway.

mod http;
mod operator;
mod sessions;
