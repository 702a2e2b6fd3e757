//! One crate on its own: `tool-schema` checks what a model wants to call a tool with, without the rest of toolplane.
//!
//! Run it with `cargo run -p toolplane-examples --example single-crate`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use raw_json::RawJson;
use serde_json::{Value, json};
use tool_core::{CheckError, CheckJson};
use tool_schema::Schema;

fn main() -> Result<(), Box<dyn Error>> {
    // Compiled once for each version of a tool, under budgets: nothing is fetched, nothing grows without limit.
    let schema = Schema::compile(&RawJson::from(json!({
        "type": "object",
        "properties": {
            "city": {"type": "string", "minLength": 1},
            "days": {"type": "integer", "minimum": 1, "maximum": 14},
        },
        "required": ["city"],
        "additionalProperties": false,
    })))?;

    let calls = [
        json!({"city": "Oslo", "days": 3}),
        json!({"city": "Oslo", "days": 30}),
        json!({"town": "Oslo"}),
    ];
    for arguments in &calls {
        match schema.check(arguments) {
            Ok(()) => println!("{arguments}\n  fits"),
            Err(error) => refuse(arguments, &error),
        }
    }

    // A schema that reaches for something outside itself is refused when it is compiled, not when it is used.
    let reaching = RawJson::from(json!({"$ref": "https://example.com/schema.json"}));
    match Schema::compile(&reaching) {
        Ok(_) => return Err("a schema that refers to the network was taken".into()),
        Err(error) => println!("{reaching}\n  refused: {error}"),
    }
    Ok(())
}

/// A model is told what stood there, a log only what kind of value it was.
fn refuse(arguments: &Value, error: &CheckError) {
    println!("{arguments}\n  for the model: {error}");
    if let CheckError::Mismatch(mismatch) = error {
        println!("  for the log:   {}", mismatch.masked());
    }
}
