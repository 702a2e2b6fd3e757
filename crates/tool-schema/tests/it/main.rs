//! What schemas accept, refuse and say, and that no pair of schema and value takes long.

mod adapt;
mod budget;
mod compile;
mod corpus;
mod defaults;
mod explain;
mod hostile;
mod shape;
mod unions;

use raw_json::RawJson;
use serde_json::Value;
use tool_core::{CheckError, CheckJson};
use tool_schema::Schema;

/// Compiles a schema that is usable.
fn compile(schema: &Value) -> Schema {
    Schema::compile(&RawJson::from(schema)).expect("the schema is usable")
}

/// What the check says, if it says anything.
fn complaint(schema: &Value, value: &Value) -> Option<String> {
    match compile(schema).check(value) {
        Ok(()) => None,
        Err(CheckError::Mismatch(mismatch)) => Some(mismatch.to_string()),
        Err(other) => panic!("not a mismatch: {other}"),
    }
}
