use toolplane::RawJson;

use crate::{
    command::{Format, Schema, SchemaOf},
    error::CliError,
    exit::Exit,
    output::{Console, yaml::yaml},
};

pub(crate) fn run(of: &Schema, console: Console) -> Result<Exit, CliError> {
    let schema = match of.of {
        SchemaOf::Configuration => schema(),
        SchemaOf::Chaos => toolplane::manifest::chaos_schema(),
    };
    match console.format {
        Format::Yaml => console.data(&yaml(&schema))?,
        _ => console.data(&schema.indented())?,
    }
    Ok(Exit::Done)
}

/// The JSON Schema of a configuration.
pub(super) fn schema() -> RawJson {
    toolplane::config_schema()
}
