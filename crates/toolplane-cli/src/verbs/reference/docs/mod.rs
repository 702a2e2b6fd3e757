use crate::{
    command::{Docs, Page},
    error::CliError,
    exit::Exit,
    output::Console,
    verbs::reference::schema,
};

mod cli;
mod configuration;

pub(crate) fn run(docs: &Docs, console: Console) -> Result<Exit, CliError> {
    let page = match docs.page {
        Page::Configuration => configuration::page(&schema::schema()),
        Page::Cli => cli::page(),
    };
    console.data(&page)?;
    Ok(Exit::Done)
}
