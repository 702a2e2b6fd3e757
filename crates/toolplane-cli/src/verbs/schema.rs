use toolplane::RawJson;

use crate::{
    command::Format,
    exit::Exit,
    failure::Failure,
    output::Console,
    text::{json::pretty, yaml::yaml},
};

pub(crate) fn run(console: Console) -> Result<Exit, Failure> {
    let schema = schema();
    match console.format {
        Format::Yaml => console.data(&yaml(&schema))?,
        _ => console.data(&pretty(&schema))?,
    }
    Ok(Exit::Done)
}

/// The JSON Schema of a configuration.
pub(super) fn schema() -> RawJson {
    toolplane::config_schema()
}
