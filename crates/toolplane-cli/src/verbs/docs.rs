use crate::{
    command::{Docs, Page},
    exit::Exit,
    failure::Failure,
    output::Console,
    verbs::schema,
};

mod cli;
mod configuration;

pub(crate) fn run(docs: &Docs, console: Console) -> Result<Exit, Failure> {
    let page = match docs.page {
        Page::Configuration => configuration::page(&schema::schema()),
        Page::Cli => cli::page(),
    };
    console.data(&page)?;
    Ok(Exit::Done)
}
