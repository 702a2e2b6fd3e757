//! Tests of the grammar, the limits, the canonical form and splicing: nothing but the requested change may alter a
//! text.

mod alike;
mod canonical;
mod grammar;
mod large;
mod limits;
mod random;
mod shape;

use raw_json::RawJson;

/// Parses a text that must be JSON.
fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned()).unwrap_or_else(|error| panic!("{text}: {error}"))
}
