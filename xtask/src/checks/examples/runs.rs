//! Runs the compared programs and checks what they write.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::comparison::{COMPARED, PEERS, Program, Run, print_lengths};
use crate::build::program::executable;
use crate::support::console::say;
use crate::support::process::{cargo, output, run, run_quietly};
use crate::support::repository::Repository;

/// Folder of the expected outputs: of ours, and below it those of the peers that write something else.
const EXPECTED: &str = "examples/expected";

/// Runs every compared program of ours and of the peers, checks its output, and prints the lengths of all.
///
/// `built` are the messages of the build of our examples.
pub(super) fn compare(repository: &Repository, built: &str) -> Result<()> {
    say("examples: running those that are compared with peers");
    for program in &COMPARED {
        if let Run::Test = program.run {
            let target = program.target();
            run_quietly(cargo(repository.root()).args([
                "test",
                "--quiet",
                "--package",
                "toolplane-examples",
                "--test",
                &target,
            ]))?;
        } else {
            let path = executable(built, &program.target())?;
            check(repository, program, &path, built, &["."])?;
        }
    }
    say("examples: building and running the peers");
    let folder = repository.root().join(PEERS);
    let target = repository.target().join("peers-of-examples");
    run(cargo(&folder).args(["fmt", "--check"]))?;
    let peers = |arguments: &[&str]| {
        let mut command = cargo(&folder);
        command.args(arguments).arg("--target-dir").arg(&target);
        command
    };
    run(&mut peers(&["build", "--quiet", "--locked", "--bins"]))?;
    for program in &COMPARED {
        if let Run::Test = program.run {
            run_quietly(&mut peers(&[
                "test",
                "--quiet",
                "--locked",
                "--test",
                program.name,
            ]))?;
        } else {
            let path = target.join("debug").join(program.name);
            check(repository, program, &path, built, &["peers", "."])?;
        }
    }
    print_lengths(repository)
}

/// Runs a program and compares its output with the first expectation that exists in one of the folders.
fn check(
    repository: &Repository,
    program: &Program,
    path: &Path,
    built: &str,
    folders: &[&str],
) -> Result<()> {
    let mut command = match program.run {
        Run::Alone | Run::Test => Command::new(path),
        Run::With(argument) => {
            let mut command = Command::new(path);
            command.arg(executable(built, argument)?);
            command
        }
        Run::By(driver) => {
            let mut command = Command::new(executable(built, driver)?);
            command.arg(path);
            command
        }
    };
    let written = output(command.current_dir(repository.root()))?;
    let files = folders.iter().map(|folder| expectation(folder, program.name));
    let expected = files.into_iter().find_map(|file| repository.text(file));
    let expected = expected.with_context(|| format!("`{}` has no expected output", program.name))?;
    if written != expected {
        bail!(
            "`{}` wrote:\n{written}\nand not, as expected:\n{expected}",
            path.display()
        );
    }
    Ok(())
}

fn expectation(folder: &str, name: &str) -> PathBuf {
    Path::new(EXPECTED).join(folder).join(name).with_extension("txt")
}
