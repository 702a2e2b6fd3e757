//! Scripts that call SDKs.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Stdio},
};

use tool_agent::serde_json::{self, Value};
use tool_testkit::Peers;

/// Registry that SDKs come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Registry {
    PyPi,
    Npm,
}

/// A script that calls the SDKs of one registry.
pub(super) struct Sdks {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Sdks {
    /// Starts the script, or reports that the SDKs are not installed.
    pub(super) fn start(registry: Registry) -> Option<Self> {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures");
        let command = Peers::from_env().and_then(|peers| match registry {
            Registry::PyPi => peers.provider_script(&fixtures.join("providers.py")),
            Registry::Npm => peers.provider_module(&fixtures.join("providers.mjs")),
        });
        let command = match command {
            Ok(command) => command,
            Err(skip) => {
                skip.report();
                return None;
            }
        };
        let mut command = command.to_command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        let (input, output) = (child.stdin.take(), child.stdout.take());
        Some(Self {
            child,
            input: input.expect("it is piped"),
            output: BufReader::new(output.expect("it is piped")),
        })
    }

    pub(super) fn call(&mut self, request: &Value) -> Value {
        writeln!(self.input, "{request}").expect("the script reads");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the script writes");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("the SDK failed on {request}"))
    }
}

impl Drop for Sdks {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
