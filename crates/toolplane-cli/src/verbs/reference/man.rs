use std::{fs, path::Path};

use crate::{
    command::{self, Man},
    error::CliError,
    exit::Exit,
    output::Console,
};

pub(crate) fn run(man: &Man, console: Console) -> Result<Exit, CliError> {
    match &man.out {
        Some(directory) => write_pages(directory, console)?,
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command::command())
                .render(&mut page)
                .map_err(|error| {
                    CliError::failed("the manual page cannot be generated").with_source(&error)
                })?;
            console.data(&String::from_utf8_lossy(&page))?;
        }
    }
    Ok(Exit::Done)
}

/// Writes a page of the program and of each command that help shows, into a directory that is made if it is missing.
fn write_pages(directory: &Path, console: Console) -> Result<(), CliError> {
    let name = directory.display();
    fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(command::command(), directory))
        .map_err(|error| {
            CliError::failed(format!("cannot write manual pages into `{name}`"))
                .with_source(&error)
                .with_hint("`--out` names a directory, which is made if it is missing")
        })?;
    console.say(&format!("wrote the manual pages into `{name}`"));
    Ok(())
}
