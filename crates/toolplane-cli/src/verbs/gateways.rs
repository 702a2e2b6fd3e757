//! The gateways of this user that run on this machine, as their operators reach them.

use std::{path::PathBuf, time::Duration};

use tokio::time::timeout;
use toolplane_gateway::{OperatorClient, OperatorClientError};

use crate::{failure::Failure, output::Console, sockets};

/// How long one may take to answer.
const LIMIT: Duration = Duration::from_secs(5);

/// A gateway that may be running.
pub(super) struct Running {
    pub(super) socket: PathBuf,
}

/// All of them, of which some may have ended without a word.
pub(super) fn all() -> Result<Vec<Running>, Failure> {
    let sockets = sockets::all().map_err(|error| {
        Failure::failed("the sockets of running gateways cannot be looked for").with_source(&error)
    })?;
    Ok(sockets.into_iter().map(|socket| Running { socket }).collect())
}

/// Asks all of them the same, and gives what those say that answer.
pub(super) async fn ask<T>(
    console: Console,
    question: impl AsyncFn(OperatorClient) -> Result<T, OperatorClientError>,
) -> Result<Vec<(Running, T)>, Failure> {
    let mut answers = Vec::new();
    for gateway in all()? {
        // One that ended without a word left its file behind.
        let Ok(client) = OperatorClient::connect(&gateway.socket).await else {
            continue;
        };
        match timeout(LIMIT, question(client)).await {
            Ok(Ok(answer)) => answers.push((gateway, answer)),
            Ok(Err(OperatorClientError::Refused { kind, .. })) if kind == "not_found" => {}
            Ok(Err(error)) => console.warn(&format!("{error}: `{}`", gateway.socket.display())),
            Err(_) => console.warn(&format!(
                "the gateway does not answer: `{}`",
                gateway.socket.display()
            )),
        }
    }
    Ok(answers)
}

impl Running {
    /// The number of its process, as its socket is called.
    pub(super) fn process(&self) -> String {
        let stem = self.socket.file_stem().unwrap_or_default().to_string_lossy();
        stem.strip_prefix("gateway-").unwrap_or(&stem).to_owned()
    }
}
