use std::{fs, io, path::Path};

use mcp_mock::{MockServer, ScenarioError};

use super::serve::{announce, listen, pipes};
use crate::{
    command,
    error::CliError,
    exit::Exit,
    output::Console,
    process::runtime::{Signals, block_on_all_cores},
};

pub(crate) fn run(mock: &command::MockServer, console: Console) -> Result<Exit, CliError> {
    let server = read(&mock.scenario)?;
    block_on_all_cores(async {
        let mut signals = Signals::listen()?;
        tokio::select! {
            served = serve(&server, mock, console) => served.map(|()| Exit::Done),
            // A scripted delay may take days, and there is nothing to lose.
            _ = signals.next() => Ok(Exit::Done),
        }
    })
}

fn read(file: &Path) -> Result<MockServer, CliError> {
    let shown = file.display();
    let text = fs::read_to_string(file).map_err(|error| {
        CliError::configuration(format!("the scenario `{shown}` cannot be read")).with_source(&error)
    })?;
    MockServer::from_yaml(&text).map_err(|error| refused(&shown.to_string(), &error))
}

fn refused(file: &str, error: &ScenarioError) -> CliError {
    let (line, column) = (error.line(), error.column());
    let failure = CliError::configuration(format!("{file}:{line}:{column}: {}", error.message()));
    match error.hint() {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}

async fn serve(server: &MockServer, mock: &command::MockServer, console: Console) -> Result<(), CliError> {
    if mock.stdio {
        let served = server.serve_stdio(pipes::stdin(), pipes::stdout(), std::future::pending());
        return match served.await {
            // A client that leaves closes the pipe.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(CliError::failed("the connection over stdin and stdout broke").with_source(&error))
            }
            _ => Ok(()),
        };
    }
    let listener = listen(mock.http).await?;
    announce(&listener, console)?;
    let served = server.serve_http(listener, std::future::pending()).await;
    served.map_err(|error| CliError::failed("serving over HTTP failed").with_source(&error))
}
