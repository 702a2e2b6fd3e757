//! `toolplane import`: tools and servers of files, and tools from descriptions of APIs.

mod files;
mod openapi;
mod report;

use crate::{
    command::{Import, ImportApi, Options},
    error::CliError,
    exit::Exit,
    output::Console,
    verbs::clients,
};

pub(crate) fn run(options: &Options, import: &Import, console: Console) -> Result<Exit, CliError> {
    match &import.api {
        Some(ImportApi::Openapi(arguments)) => openapi::run(options, arguments, console),
        Some(ImportApi::McpJson(arguments)) => clients::import(options, arguments, console),
        None => files::run(options, import, console),
    }
}
