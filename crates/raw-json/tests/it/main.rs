//! What is JSON and what is not, and that nothing but what was asked for changes.

mod alike;
mod canonical;
mod grammar;
mod large;
mod limits;
mod random;
mod shape;

use raw_json::RawJson;

/// A text that is JSON.
fn raw(text: &str) -> RawJson {
    RawJson::parse(text.to_owned()).unwrap_or_else(|error| panic!("{text}: {error}"))
}
