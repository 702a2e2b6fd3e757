use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::Path,
};

use crate::{command::Init, error::CliError, exit::Exit, output::Console};

/// Example configuration. It works without a network and shows the rest as comments.
const EXAMPLE: &str = include_str!("init.yaml");
const DEFAULT_FILE: &str = "toolplane.yaml";

pub(crate) fn run(init: &Init, console: Console) -> Result<Exit, CliError> {
    let file = &init.file;
    let name = file.display();
    write(file, init.force).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => CliError::failed(format!("`{name}` exists already"))
            .with_hint("name another file, or replace it with `--force`"),
        _ => CliError::failed(format!("cannot write `{name}`")).with_source(&error),
    })?;
    let option = if file == Path::new(DEFAULT_FILE) {
        String::new()
    } else {
        format!("-c {name} ")
    };
    console.say(&format!(
        "wrote `{name}`; try it:\n  \
         toolplane {option}check\n  \
         toolplane {option}tools ls\n  \
         toolplane {option}call greet name=World\n  \
         toolplane {option}serve"
    ));
    Ok(Exit::Done)
}

/// Writes the example. Overwrites an existing file only with `force`.
fn write(file: &Path, force: bool) -> io::Result<()> {
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory)?;
    }
    let mut options = OpenOptions::new();
    options.write(true);
    if force {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    options.open(file)?.write_all(EXAMPLE.as_bytes())
}
