//! Steps of the demo, in order, with the expected result of each.

use std::fs::{self, File};
use std::io::Write;
use std::net::TcpListener;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use tokio::process::Command;

use super::processes::Processes;
use super::programs::Programs;
use crate::support::console::say;
use crate::support::repository::Repository;

/// Configuration that is served, relative to the root.
const CONFIGURATION: &str = "examples/toolplane.yaml";

/// Command of the tour.
struct Step {
    /// Title of the step.
    title: &'static str,
    arguments: &'static [&'static str],
    /// Expected exit code.
    exit: i32,
    /// Text that stdout must contain.
    shows: &'static str,
}

/// Commands of `toolplane`.
const STEPS: [Step; 11] = [
    Step {
        title: "Every mistake in a configuration is found before anything runs.",
        arguments: &["check"],
        exit: 0,
        shows: "",
    },
    Step {
        title: "Servers are started when they are needed: now.",
        arguments: &["servers", "ls"],
        exit: 0,
        shows: "everything",
    },
    Step {
        title: "All tools, whatever runs them, are one list.",
        arguments: &["tools", "ls"],
        exit: 0,
        shows: "remote_add",
    },
    Step {
        title: "A mock with a fixed result.",
        arguments: &["call", "stations"],
        exit: 0,
        shows: "OSL-1",
    },
    Step {
        title: "A mock with a template, and what each layer decided about the call.",
        arguments: &["call", "alert", "city=Oslo", "level=orange", "--explain"],
        exit: 0,
        shows: "orange alert for Oslo",
    },
    Step {
        title: "An HTTP API: the city is encoded into the path, the answer is cut out and checked.",
        arguments: &["call", "forecast", "city=São Paulo", "days=2", "--explain"],
        exit: 0,
        shows: "São Paulo",
    },
    Step {
        title: "The same API, with an effect: `local` has the permission that this tool requires.",
        arguments: &["call", "report", "city=Oslo", "sky=clear"],
        exit: 0,
        shows: "accepted",
    },
    Step {
        title: "A tool of an MCP server over stdio.",
        arguments: &["call", "everything__get-sum", "a=2", "b=40", "--explain"],
        exit: 0,
        shows: "42",
    },
    Step {
        title: "The same tool of an MCP server over Streamable HTTP, under the name it was given here.",
        arguments: &["call", "remote_add", "a=2", "b=40"],
        exit: 0,
        shows: "42",
    },
    Step {
        title: "A tool that the policy blocks is denied: exit code 4.",
        arguments: &["call", "everything__get-env"],
        exit: 4,
        shows: "",
    },
    Step {
        title: "Arguments that do not fit are refused before anything is sent: exit code 2.",
        arguments: &["call", "forecast", "city=Oslo", "days=30"],
        exit: 2,
        shows: "",
    },
];

/// MCP client by the official SDK, relative to the root.
const CLIENT: &str = "examples/client.cjs";

/// Requests to the gateway from the client.
const CLIENT_STEPS: [Step; 2] = [
    Step {
        title: "An MCP client lists the tools. It comes over HTTP without a login: `report` is not for it.",
        arguments: &[],
        exit: 0,
        shows: "\"remote_add\"",
    },
    Step {
        title: "An MCP client calls a tool.",
        arguments: &["forecast", r#"{"city": "Oslo", "days": 2}"#],
        exit: 0,
        shows: "cloudy",
    },
];

/// The tour and the paths of its parts.
#[derive(Debug)]
pub(super) struct Tour {
    root: PathBuf,
    /// Folder for the logs of background processes, and for the data of the program.
    folder: PathBuf,
    programs: Programs,
    gateway_port: u16,
    weather_port: u16,
    everything_port: u16,
}

impl Tour {
    pub(super) fn new(repository: &Repository, programs: Programs) -> Result<Self> {
        let folder = repository.target().join("demo");
        fs::create_dir_all(&folder).with_context(|| format!("failed to make `{}`", folder.display()))?;
        Ok(Self {
            root: repository.root().to_path_buf(),
            folder,
            programs,
            gateway_port: port(7080)?,
            weather_port: port(7081)?,
            everything_port: port(7082)?,
        })
    }

    pub(super) fn gateway_url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.gateway_port)
    }

    /// Starts the processes that the example needs, shows every step, and leaves the gateway running.
    pub(super) async fn walk(&mut self, processes: &mut Processes) -> Result<()> {
        self.start_services(processes).await?;
        say(self.environment());
        for step in &STEPS {
            title(step);
            say(format_args!("$ toolplane {}", shown(step.arguments)));
            let mut command = self.toolplane();
            command.args(step.arguments);
            show(step, processes.output("toolplane", command).await?)?;
        }
        self.serve(processes).await?;
        for step in &CLIENT_STEPS {
            title(step);
            let url = self.gateway_url();
            say(format_args!("$ node {CLIENT} {url} {}", shown(step.arguments)));
            let ended = processes.output(CLIENT, self.client(step)).await?;
            ensure!(
                !ended.1.contains("\"report\""),
                "a client without a login sees `report`"
            );
            show(step, ended)?;
        }
        Ok(())
    }

    async fn start_services(&self, processes: &mut Processes) -> Result<()> {
        say(format_args!(
            "demo: starting the HTTP API on port {} and an MCP server on port {} ...",
            self.weather_port, self.everything_port
        ));
        let mut weather = Command::new(&self.programs.weather_service);
        weather.arg(format!("127.0.0.1:{}", self.weather_port));
        self.log_to("weather-service.log", &mut weather)?;
        processes.start("weather-service", weather)?;
        processes.wait_for_port(self.weather_port).await?;

        let mut everything = Command::new(&self.programs.node);
        let script = "@modelcontextprotocol/server-everything/dist/index.js";
        everything
            .arg(self.programs.modules().join(script))
            .arg("streamableHttp")
            .env("PORT", self.everything_port.to_string());
        self.log_to("server-everything.log", &mut everything)?;
        processes.start("server-everything", everything)?;
        processes.wait_for_port(self.everything_port).await
    }

    async fn serve(&self, processes: &mut Processes) -> Result<()> {
        let address = format!("127.0.0.1:{}", self.gateway_port);
        say("\n# The gateway: the same tools, for MCP clients.");
        say(format_args!("$ toolplane serve --http {address} &"));
        let mut command = self.toolplane();
        command.args(["serve", "--http", &address]);
        processes.start("toolplane serve", command)?;
        processes.wait_for_port(self.gateway_port).await
    }

    fn toolplane(&self) -> Command {
        let mut command = Command::new(&self.programs.toolplane);
        command.current_dir(&self.root).envs(self.variables());
        // The user's store is not read, and stays as it is.
        command
            .env("XDG_DATA_HOME", &self.folder)
            .env("XDG_CACHE_HOME", &self.folder);
        command
    }

    fn client(&self, step: &Step) -> Command {
        let mut command = Command::new(&self.programs.node);
        command
            .current_dir(&self.root)
            .arg(CLIENT)
            .arg(self.gateway_url())
            .args(step.arguments)
            .env("NODE_PATH", self.programs.modules());
        command
    }

    /// Returns the variables that the example's configuration refers to.
    fn variables(&self) -> [(&'static str, String); 5] {
        let text = |path: &PathBuf| path.display().to_string();
        [
            ("TOOLPLANE_CONFIG", CONFIGURATION.to_owned()),
            ("TOOLPLANE_PEERS", text(&self.programs.peers)),
            ("TOOLPLANE_NODE", text(&self.programs.node)),
            ("WEATHER_URL", format!("http://127.0.0.1:{}", self.weather_port)),
            (
                "EVERYTHING_URL",
                format!("http://127.0.0.1:{}/mcp", self.everything_port),
            ),
        ]
    }

    /// Returns the environment variables to set for the same steps by hand.
    fn environment(&self) -> String {
        let toolplane = self.programs.toolplane.display();
        let mut text = format!("\n# `toolplane` is {toolplane}; the steps run with");
        for (name, value) in self.variables() {
            text += &format!("\n# {name}={value}");
        }
        text
    }

    fn log_to(&self, name: &str, command: &mut Command) -> Result<()> {
        let path = self.folder.join(name);
        let log = File::create(&path).with_context(|| format!("failed to make `{}`", path.display()))?;
        command.stderr(log.try_clone()?).stdout(log);
        Ok(())
    }
}

fn title(step: &Step) {
    say(format_args!("\n# {}", step.title));
}

/// Shows the output of a step, and fails if it is not as expected.
fn show(step: &Step, (status, text): (std::process::ExitStatus, String)) -> Result<()> {
    std::io::stdout()
        .write_all(text.as_bytes())
        .context("failed to write to stdout")?;
    if step.exit != 0 {
        say(format_args!("(exit code {})", step.exit));
    }
    if status.code() != Some(step.exit) {
        bail!("the step ended with {status}, and should have with {}", step.exit);
    }
    ensure!(
        text.contains(step.shows),
        "the step should have shown `{}`",
        step.shows
    );
    Ok(())
}

/// Formats the words of a command for a shell.
fn shown(arguments: &[&str]) -> String {
    let words: Vec<_> = arguments
        .iter()
        .map(|word| {
            if word.contains(' ') {
                format!("'{word}'")
            } else {
                (*word).to_owned()
            }
        })
        .collect();
    words.join(" ")
}

/// Returns the port that the documentation names, or another one if that is taken.
fn port(usual: u16) -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", usual))
        .or_else(|_| TcpListener::bind(("127.0.0.1", 0)))
        .context("there is no free port")?;
    Ok(listener.local_addr()?.port())
}
