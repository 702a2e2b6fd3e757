//! Client of this user's running gateways on this machine.

mod ancestors;
pub(crate) mod sockets;

use std::{fs, io, path::PathBuf, time::Duration};

use tokio::time::timeout;
use toolplane_gateway::{OperatorClient, OperatorClientError};

use crate::{error::CliError, exit::Exit, output::Console};

/// Time limit for the answer of one gateway.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// A gateway that may be running.
pub(crate) struct RunningGateway {
    pub(crate) socket: PathBuf,
}

/// Asks all running gateways one question and returns the answers of those that have one.
///
/// # Errors
/// If no gateway was reached: an empty list would mean that there is nothing to report.
pub(crate) async fn ask<T>(
    console: Console,
    question: impl AsyncFn(OperatorClient) -> Result<T, OperatorClientError>,
) -> Result<Vec<(RunningGateway, T)>, CliError> {
    ask_running(console, question).await.ok_or_else(none_reached)
}

/// Asks all running gateways one question, as [`ask`] does. `None` if no gateway was reached.
pub(crate) async fn ask_running<T>(
    console: Console,
    question: impl AsyncFn(OperatorClient) -> Result<T, OperatorClientError>,
) -> Option<Vec<(RunningGateway, T)>> {
    let (sockets, problems) = sockets::all();
    for problem in problems {
        console.warn(&format!("gateways may be missing: {problem}"));
    }
    let mut answers = Vec::new();
    let mut n_reached = 0;
    for socket in sockets {
        let client = match OperatorClient::connect(&socket).await {
            Ok(client) => client,
            // A gateway that was killed leaves its socket behind.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                sockets::remove_stale(&socket);
                continue;
            }
            Err(_) => continue,
        };
        let gateway = RunningGateway { socket };
        match timeout(ANSWER_TIMEOUT, question(client)).await {
            Ok(Ok(answer)) => {
                n_reached += 1;
                answers.push((gateway, answer));
            }
            Ok(Err(OperatorClientError::Refused { kind, .. })) if kind == "not_found" => n_reached += 1,
            Ok(Err(error)) => console.warn(&format!("{error}: `{}`", gateway.socket.display())),
            Err(_) => console.warn(&format!(
                "the gateway does not answer: `{}`",
                gateway.socket.display()
            )),
        }
    }
    (n_reached > 0).then_some(answers)
}

/// Connects to the gateway of this user that started last. `None` if none runs. A gateway that started this process is left out:
/// it would wait for itself.
pub(crate) async fn latest() -> Option<(RunningGateway, OperatorClient)> {
    let (mut sockets, _) = sockets::all();
    sockets.sort_by_cached_key(|socket| fs::metadata(socket).and_then(|metadata| metadata.modified()).ok());
    for socket in sockets.into_iter().rev() {
        let gateway = RunningGateway { socket };
        if ancestors::is_ancestor(&gateway.process()) {
            continue;
        }
        match OperatorClient::connect(&gateway.socket).await {
            Ok(client) => return Some((gateway, client)),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                sockets::remove_stale(&gateway.socket);
            }
            Err(_) => {}
        }
    }
    None
}

/// Returns the error of a verb that needs a running gateway.
pub(crate) fn none_reached() -> CliError {
    let directories = sockets::directories();
    let places: Vec<String> = directories
        .iter()
        .map(|directory| format!("`{}`", directory.display()))
        .collect();
    let message = "no gateway of this user was reached";
    CliError::new(Exit::Unavailable, "unavailable", message).with_hint(format!(
        "`toolplane serve` starts one; looked for sockets in {}",
        places.join(", ")
    ))
}

impl RunningGateway {
    /// Returns the process id, taken from the name of the socket.
    pub(crate) fn process(&self) -> String {
        sockets::process_of(&self.socket)
    }
}
