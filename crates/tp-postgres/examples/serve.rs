//! Starts a server for several runs of tests, and stops it when its input ends: set the printed variable for the tests.

use std::io::{Read as _, Write as _};

use tp_postgres::{PostgresServer, SERVER_VARIABLE};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = PostgresServer::start()?;
    let mut output = std::io::stdout();
    writeln!(output, "export {SERVER_VARIABLE}='{}'", server.variable())?;
    output.flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
