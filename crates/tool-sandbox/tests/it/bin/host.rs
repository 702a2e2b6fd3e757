//! Program that runs a sandboxed daemon until it is killed itself: `tool-sandbox-host LEVEL MARK`.

use std::time::Duration;

use tool_sandbox::{Sandbox, SandboxCommand, SandboxLevel, SandboxLimits};

const DAEMON: &str = "trap '' TERM INT HUP; (setsid sleep \"$1\" || exec sleep \"$1\") & wait";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<_> = std::env::args().collect();
    let [_, level, mark] = &arguments[..] else {
        panic!("usage: tool-sandbox-host LEVEL MARK");
    };
    let level = if level == "bwrap" {
        SandboxLevel::Bwrap
    } else {
        SandboxLevel::Landlock
    };
    let sandbox = Sandbox::at(level).await.expect("the level works");
    let command = SandboxCommand::new("/bin/sh")
        .args(["-c", DAEMON, "sh", mark])
        .limits(SandboxLimits::default().with_wall_time(Duration::from_secs(3600)));
    let output = sandbox.run(command).await;
    panic!("the daemon ended: {output:?}");
}
