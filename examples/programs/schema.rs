//! JSON Schema alone: checks the arguments of a model as it wrote them.
//!
//! Run it with `cargo run -p toolplane-examples --example schema`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use tool_schema::{Schema, SchemaError};

fn main() -> Result<(), SchemaError> {
    let schema: Schema = r#"{"properties": {"days": {"type": "integer", "maximum": 14}}}"#.parse()?;
    for text in [r#"{"days":3}"#, r#"{"days":30}"#, r#"{"days":1,"days":2}"#] {
        if let Err(error) = schema.check_text(text) {
            println!("{text}: {error}");
        }
    }
    Ok(())
}
