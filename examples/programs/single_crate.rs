//! A single crate: `tool-schema` checks a model's arguments for a tool, without the rest of toolplane.
//!
//! Run it with `cargo run -p toolplane-examples --example single-crate`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use tool_schema::{
    CheckError, Schema,
    serde_json::{Value, json},
};

fn main() -> Result<(), Box<dyn Error>> {
    // Compiled once for each version of a tool, within limits: nothing is fetched, and the work is bounded.
    let schema = Schema::compile_value(&json!({
        "type": "object",
        "properties": {
            "city": {"type": "string", "minLength": 1},
            "days": {"type": "integer", "minimum": 1, "maximum": 14},
        },
        "required": ["city"],
        "additionalProperties": false,
    }))?;

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

    // A schema that refers outside itself is refused when it is compiled, not when it is used.
    let reaching = json!({"$ref": "https://example.com/schema.json"});
    match Schema::compile_value(&reaching) {
        Ok(_) => return Err("a schema that refers to the network was taken".into()),
        Err(error) => println!("{reaching}\n  refused: {error}"),
    }
    Ok(())
}

/// Prints the message for the model, which has the value, and that for the log, which has only its type.
fn refuse(arguments: &Value, error: &CheckError) {
    println!("{arguments}\n  for the model: {error}");
    if let CheckError::Mismatch(mismatch) = error {
        println!("  for the log:   {}", mismatch.masked());
    }
}
