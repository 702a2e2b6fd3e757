use crate::{
    command::{self, Completions},
    error::CliError,
    exit::Exit,
    output::Console,
};

pub(crate) fn run(completions: &Completions, console: Console) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(
        completions.shell,
        &mut command::command(),
        "toolplane",
        &mut script,
    );
    console.data(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
