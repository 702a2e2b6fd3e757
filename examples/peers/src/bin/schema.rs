//! `schema` with jsonschema.

use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let days = json!({"type": "integer", "minimum": 1, "maximum": 14});
    let schema = json!({"properties": {"city": {"type": "string"}, "days": days}, "required": ["city"]});
    let validator = jsonschema::validator_for(&schema)?;
    for text in [
        r#"{"city":"Oslo","days":3}"#,
        r#"{"days":30}"#,
        r#"{"city":"Oslo","city":"Bergen"}"#,
    ] {
        let arguments: Value = serde_json::from_str(text)?;
        let errors: Vec<_> = validator
            .iter_errors(&arguments)
            .map(|error| error.to_string())
            .collect();
        println!(
            "{text}: {}",
            if errors.is_empty() {
                "fits".into()
            } else {
                errors.join("; ")
            }
        );
    }
    Ok(())
}
