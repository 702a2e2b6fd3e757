use serde_json::json;

use crate::{exit::Exit, failure::Failure, output::Console};

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) fn run(console: Console) -> Result<Exit, Failure> {
    let value = json!({"name": "toolplane", "version": VERSION});
    console.value(&value, || format!("toolplane {VERSION}"))?;
    Ok(Exit::Done)
}
