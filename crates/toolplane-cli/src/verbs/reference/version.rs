use serde_json::json;

use crate::{error::CliError, exit::Exit, output::Console};

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) fn run(console: Console) -> Result<Exit, CliError> {
    let value = json!({"name": "toolplane", "version": VERSION});
    console.value(&value, || format!("toolplane {VERSION}"))?;
    Ok(Exit::Done)
}
