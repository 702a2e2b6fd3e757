//! The binary `toolplane`.

use std::process::ExitCode;

fn main() -> ExitCode {
    toolplane_cli::main()
}
