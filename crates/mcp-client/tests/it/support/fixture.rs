//! The program of `tests/it/bin/fixture.rs`, an example of this package, which cargo builds with the tests.

use std::{env, path::PathBuf};

use mcp_client::Command;

/// Path of the program.
pub(crate) fn path() -> PathBuf {
    let test = env::current_exe().unwrap();
    let profile = test.ancestors().nth(2).expect("a test is in `deps`");
    let name = format!("mcp-client-fixture{}", env::consts::EXE_SUFFIX);
    let path = profile.join("examples").join(name);
    let hint = "build it: cargo build -p mcp-client --example mcp-client-fixture";
    assert!(path.exists(), "`{}` is missing; {hint}", path.display());
    path
}

/// Command that starts it in a mode.
pub(crate) fn command(mode: &str) -> Command {
    Command::new(path()).args([mode])
}
