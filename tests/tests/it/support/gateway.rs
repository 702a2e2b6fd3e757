use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{ChildStdin, ChildStdout, Command, ExitStatus},
    thread,
};

use rustix::process::Signal;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tool_testkit::PeerCommand;
use toolplane_tests::own_directories;

use super::{
    client::{Era, StdioClient},
    http_client::HttpClient,
    offer::Offer,
    process::{Identity, Process, assert_all_end, base_environment},
    time::eventually,
};

/// Returns the tested program, which cargo builds next to the tests.
pub(crate) fn binary() -> PathBuf {
    built("toolplane", "toolplane-cli")
}

/// Returns a program of the workspace.
pub(super) fn built(program: &str, package: &str) -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.ancestors().nth(2).unwrap().join(program);
    assert!(
        program.is_file(),
        "`{}` is missing: build it with `cargo build -p {package}`, or test the whole workspace",
        program.display()
    );
    program
}

/// Returns a shipped example file.
pub(crate) fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../examples")
        .join(name)
}

/// Returns the arguments that turn the program into a server with a scenario.
pub(crate) fn mock_arguments(scenario: &Path) -> [&str; 4] {
    ["mock-server", "--stdio", "--scenario", scenario.to_str().unwrap()]
}

/// Returns the settings of a server with a scenario.
pub(crate) fn mock_server(scenario: &Path) -> Value {
    json!({"command": binary().to_str().unwrap(), "args": mock_arguments(scenario)})
}

/// A configuration in the short form.
#[derive(Default)]
pub(crate) struct Configuration {
    servers: Map<String, Value>,
    tools: Map<String, Value>,
    gateway: Value,
    defaults: Value,
}

impl Configuration {
    /// Adds a third-party server.
    pub(crate) fn peer(self, name: &str, peer: &PeerCommand) -> Self {
        self.peer_with(name, peer, &json!({}))
    }

    /// Adds a third-party server with settings.
    pub(crate) fn peer_with(self, name: &str, peer: &PeerCommand, settings: &Value) -> Self {
        let text = |text: &std::ffi::OsStr| text.to_str().unwrap().to_owned();
        let env: Map<String, Value> = peer
            .env
            .iter()
            .map(|(name, value)| (text(name), Value::from(text(value))))
            .collect();
        let args: Vec<String> = peer.args.iter().map(|arg| text(arg)).collect();
        // A slow machine needs longer than usual to start Python with all its imports.
        let mut server = json!({
            "command": peer.program.to_str().unwrap(), "args": args, "env": env, "start_timeout_ms": 60_000,
        });
        let server_settings = server.as_object_mut().unwrap();
        server_settings.extend(settings.as_object().unwrap().clone());
        self.server(name, server)
    }

    pub(crate) fn server(mut self, name: &str, server: Value) -> Self {
        self.servers.insert(name.to_owned(), server);
        self
    }

    pub(crate) fn tool(mut self, name: &str, tool: Value) -> Self {
        self.tools.insert(name.to_owned(), tool);
        self
    }

    /// Adds settings of the gateway itself.
    pub(crate) fn gateway(self, settings: Value) -> Self {
        Self {
            gateway: settings,
            ..self
        }
    }

    /// Makes lists wait until every server was read, so that slow machines pass.
    pub(crate) fn waiting_for_lists(self) -> Self {
        self.gateway(json!({"list_wait": "90s"}))
    }

    /// Sets the defaults of servers and tools.
    pub(crate) fn defaults(self, settings: Value) -> Self {
        Self {
            defaults: settings,
            ..self
        }
    }

    /// Writes it as JSON, which is also YAML.
    pub(crate) fn write(&self, folder: &Path) -> PathBuf {
        let path = folder.join("toolplane.yaml");
        let mut configuration = json!({"servers": self.servers, "tools": self.tools});
        for (key, settings) in [("gateway", &self.gateway), ("defaults", &self.defaults)] {
            if !settings.is_null() {
                configuration[key] = settings.clone();
            }
        }
        fs::write(&path, configuration.to_string()).unwrap();
        path
    }
}

/// `toolplane serve` with a configuration, and its client.
pub(crate) struct Gateway {
    pub(crate) client: StdioClient,
    /// Holds the configuration file.
    _folder: TempDir,
}

/// `toolplane serve` over HTTP.
pub(crate) struct HttpGateway {
    pub(crate) process: Process,
    pub(crate) address: SocketAddr,
    _folder: TempDir,
}

impl Gateway {
    /// Serves on stdio and opens the connection.
    pub(crate) fn stdio(configuration: &Configuration) -> Self {
        Self::stdio_in(Era::Legacy, configuration)
    }

    /// Serves a client of this era on stdio.
    pub(crate) fn stdio_in(era: Era, configuration: &Configuration) -> Self {
        Self::stdio_offering(era, configuration, Offer::default())
    }

    /// Serves an existing configuration on stdio.
    pub(crate) fn stdio_of_file(configuration: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = serve(configuration, folder.path());
        Self {
            client: StdioClient::start(command.arg("--stdio"), Era::Legacy),
            _folder: folder,
        }
    }

    /// Kills it, as a crash would.
    pub(crate) fn kill(self) {
        self.client.process.signal(Signal::KILL);
    }

    /// Serves a client on stdio that can be asked.
    pub(crate) fn stdio_offering(era: Era, configuration: &Configuration, offer: Offer) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = serve(&configuration.write(folder.path()), folder.path());
        Self {
            client: StdioClient::start_offering(command.arg("--stdio"), era, offer),
            _folder: folder,
        }
    }

    /// Serves on stdio without a client. Returns the process, its input and its output.
    pub(crate) fn pipes(configuration: &Configuration) -> (Process, ChildStdin, ChildStdout) {
        let folder = tempfile::tempdir().unwrap();
        let pipes = Process::spawn(serve(&configuration.write(folder.path()), folder.path()).arg("--stdio"));
        // The file is read before the first answer, and not again.
        eventually("the gateway has read its configuration", || {
            !pipes.0.descendants().is_empty()
        });
        pipes
    }

    /// Serves on a free port of the loopback interface.
    pub(crate) fn http(configuration: &Configuration) -> HttpGateway {
        let folder = tempfile::tempdir().unwrap();
        let command = serve(&configuration.write(folder.path()), folder.path());
        HttpGateway::start(command, folder)
    }

    /// Closes the input, as a client does, and checks that nothing is left behind.
    pub(crate) fn end(mut self) -> ExitStatus {
        let family = self.client.process.descendants();
        self.client.close();
        ended(&mut self.client.process, &family)
    }

    /// Waits for an end with another cause, and checks that these processes have ended too.
    pub(crate) fn end_of(mut self, family: &[Identity]) -> ExitStatus {
        ended(&mut self.client.process, family)
    }

    /// Ends it by a signal and checks that nothing is left behind.
    pub(crate) fn terminate(mut self) -> ExitStatus {
        let family = self.client.process.descendants();
        self.client.process.signal(Signal::TERM);
        ended(&mut self.client.process, &family)
    }
}

impl HttpGateway {
    /// Serves an existing configuration, with these variables set.
    pub(crate) fn of_file(configuration: &Path, variables: &[(&str, String)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = serve(configuration, folder.path());
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        Self::start(command, folder)
    }

    fn start(mut command: Command, folder: TempDir) -> Self {
        let process = Process::run(command.args(["--http", "127.0.0.1:0"]));
        let mut address = None;
        eventually("the gateway says where it listens", || {
            address = listening(&process.stderr());
            address.is_some()
        });
        Self {
            process,
            address: address.unwrap(),
            _folder: folder,
        }
    }

    /// Returns a client with an open connection.
    pub(crate) fn client(&self, era: Era) -> HttpClient {
        HttpClient::open_at(self.address, era)
    }

    /// Returns a client with an open connection that can be asked.
    pub(crate) fn client_offering(&self, era: Era, offer: Offer) -> HttpClient {
        HttpClient::open_offering(self.address, era, offer)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Ends it by a signal and checks that nothing is left behind.
    pub(crate) fn terminate(mut self) -> ExitStatus {
        let family = self.process.descendants();
        self.process.signal(Signal::TERM);
        ended(&mut self.process, &family)
    }
}

/// Ends both at the same time, regularly: some servers are slow to end.
pub(crate) fn end_both(stdio: Gateway, http: HttpGateway) {
    thread::scope(|scope| {
        let stdio = scope.spawn(|| stdio.end());
        assert_eq!(http.terminate().code(), Some(0));
        assert_eq!(stdio.join().unwrap().code(), Some(0));
    });
}

fn ended(process: &mut Process, family: &[Identity]) -> ExitStatus {
    let status = process.wait();
    assert_all_end(family);
    status
}

/// Returns the command `toolplane serve` with what it keeps in this folder.
fn serve(configuration: &Path, folder: &Path) -> Command {
    let mut command = Command::new(binary());
    // The log level of the test's environment must not reach the gateway.
    command.env_clear().envs(base_environment());
    // Nor what another test or the user has kept.
    own_directories(&mut command, folder);
    command
        .args(["serve", "--drain", "2s", "--config"])
        .arg(configuration);
    command
}

/// Returns the address in the gateway's stderr.
fn listening(stderr: &str) -> Option<SocketAddr> {
    let rest = &stderr[stderr.find("http://")? + "http://".len()..];
    // The line may be incomplete.
    let end = rest.find('/')?;
    rest[..end].parse().ok()
}
