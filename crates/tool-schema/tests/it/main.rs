//! Decisions and messages of schemas, and the time limits of checks.

mod adapt;
mod budget;
mod compatibility;
mod compile;
mod corpus;
mod defaults;
mod explain;
mod fast_check;
mod hostile;
mod unions;
mod verify;

use raw_json::RawJson;
use serde_json::Value;
use tool_schema::CheckError;
use tool_schema::Schema;

/// Compiles a usable schema.
fn compile(schema: &Value) -> Schema {
    Schema::compile(&RawJson::from(schema)).expect("the schema is usable")
}

/// Returns the message of a failed check, or `None` if the value fits.
fn complaint(schema: &Value, value: &Value) -> Option<String> {
    match compile(schema).check(value) {
        Ok(()) => None,
        Err(CheckError::Mismatch(mismatch)) => Some(mismatch.to_string()),
        Err(other) => panic!("not a mismatch: {other}"),
    }
}
