//! Tests of the framing: tables for the envelope, properties for the decoders.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod framing;
mod log_level;
mod message;
mod meta;
mod write;
