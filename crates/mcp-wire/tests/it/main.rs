//! Tests of the framing: tables for the envelope, properties for the decoders.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod framing;
mod lenient;
mod log_level;
#[cfg(feature = "strict")]
mod look_alikes;
#[cfg(feature = "strict")]
mod message;
mod meta;
mod mirrored;
#[cfg(feature = "strict")]
mod params;
#[cfg(feature = "strict")]
mod properties;
#[cfg(feature = "strict")]
mod write;

use proptest::test_runner::{Config, RngSeed};
use raw_json::RawJson;

/// Parses a text that is JSON.
fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Configures a number of cases, the same ones in every run.
fn deterministic(cases: u32) -> Config {
    Config {
        cases,
        rng_seed: RngSeed::Fixed(0x006d_6370),
        failure_persistence: None,
        ..Config::default()
    }
}
