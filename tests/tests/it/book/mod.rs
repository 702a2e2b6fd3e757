//! Pages of the book whose examples are run as they stand there.

mod clients;
mod dialects;
mod sdks;

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;
use toolplane_tests::own_directories;

use crate::support::{HttpGateway, base_environment, binary};

/// Address of the gateway on the pages.
const ADDRESS: &str = "127.0.0.1:7080";

/// Home folder of a user.
struct Home {
    folder: TempDir,
}

/// Gateway of the user, which wants a token.
struct TokenGateway {
    gateway: HttpGateway,
    token: String,
}

impl Home {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// Creates the home of a user who has run `toolplane init` in it.
    fn with_configuration() -> Self {
        let home = Self::new();
        home.toolplane(&["init"]);
        home
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn configuration(&self) -> PathBuf {
        self.path().join("toolplane.yaml")
    }

    /// Returns the program in the environment of the user, who has `toolplane` on `PATH`.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(base_environment());
        own_directories(&mut command, self.path());
        command
            .env("HOME", self.path())
            .env("PATH", path_with_toolplane())
            .current_dir(self.path());
        command
    }

    /// Runs `toolplane` and returns its standard output.
    fn toolplane(&self, arguments: &[&str]) -> String {
        let output = self.command(binary()).args(arguments).output().unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {complaint}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Serves the configuration over HTTP to clients with tokens.
    fn serve(&self) -> TokenGateway {
        let token = self.toolplane(&["tokens", "create", "ada"]).trim().to_owned();
        let configuration = self.path().join("with-tokens.yaml");
        let tools = fs::read_to_string(self.configuration()).unwrap();
        fs::write(&configuration, format!("gateway: {{auth: tokens}}\n{tools}")).unwrap();
        let data = self.path().join("data").to_str().unwrap().to_owned();
        let gateway = HttpGateway::of_file(&configuration, &[("XDG_DATA_HOME", data)]);
        TokenGateway { gateway, token }
    }
}

fn path_with_toolplane() -> OsString {
    let own = binary().parent().unwrap().to_path_buf();
    let others = env::var_os("PATH").unwrap_or_default();
    env::join_paths([own].into_iter().chain(env::split_paths(&others))).unwrap()
}
