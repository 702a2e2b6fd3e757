//! `schema` with jsonschema.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let schema = serde_json::from_str(r#"{"properties": {"days": {"type": "integer", "maximum": 14}}}"#)?;
    let validator = jsonschema::validator_for(&schema)?;
    for text in [r#"{"days":3}"#, r#"{"days":30}"#, r#"{"days":1,"days":2}"#] {
        for error in validator.iter_errors(&serde_json::from_str(text)?) {
            println!("{text}: {error}");
        }
    }
    Ok(())
}
