//! The transports and pages of the gateway.

mod embedded;
mod http;
mod operator;
mod sessions;
