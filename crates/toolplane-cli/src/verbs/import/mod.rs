//! `toolplane import`: tools from descriptions of APIs.

mod openapi;
mod report;

use crate::{command::Import, error::CliError, exit::Exit, output::Console};

pub(crate) fn run(import: &Import, console: Console) -> Result<Exit, CliError> {
    match import {
        Import::Openapi(arguments) => openapi::run(arguments, console),
    }
}
