//! `toolplane endpoint`: the tools as a command endpoint, on stdin and stdout.

mod requests;

use std::io;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use toolplane::{
    EndpointService, RawJson, Toolplane,
    core::{ErrorKind, ToolError},
    faults::ChaosLayer,
};
use toolplane_gateway::OperatorClientError;

use self::requests::{NextRequest, Requests};
use super::{EXPORT_TIMEOUT, serve::pipes};
use crate::{
    command::{Endpoint, Options},
    config,
    error::CliError,
    exit::Exit,
    gateways,
    output::Console,
    process::runtime::{Signals, block_on},
    telemetry::Telemetry,
};

pub(crate) fn run(options: &Options, endpoint: &Endpoint, console: Console) -> Result<Exit, CliError> {
    block_on(async {
        let mut signals = Signals::listen()?;
        let mut answers = Answers {
            options: Options {
                ignores_endpoint_variable: true,
                ..options.clone()
            },
            forwards: !endpoint.no_gateway && options.config.is_empty(),
            telemetry: Telemetry::start(console),
            own: None,
            console,
        };
        let result = tokio::select! {
            served = answers.serve() => served.map_err(|error| {
                CliError::failed("stdin or stdout broke").with_source(&error)
            }),
            exit = signals.next() => Err(CliError::silent(exit)),
        };
        tokio::select! {
            () = answers.shutdown() => result.map(|()| Exit::Done),
            // A second signal skips the shutdown.
            exit = signals.next() => Err(CliError::silent(exit)),
        }
    })
}

/// Answers to requests: of a running gateway, or else of a toolplane in this process, which is built when it is needed.
struct Answers {
    options: Options,
    /// `true` if a running gateway answers.
    forwards: bool,
    telemetry: Telemetry,
    own: Option<Toolplane>,
    console: Console,
}

impl Answers {
    async fn serve(&mut self) -> io::Result<()> {
        let mut requests = Requests::new(pipes::stdin());
        let mut output = pipes::stdout();
        let mut n_answers = 0_u64;
        loop {
            let answer = match requests.next().await? {
                NextRequest::Request(request) => self.answer(&request).await,
                NextRequest::Refused(reason) => refusal(&reason),
                NextRequest::End if n_answers == 0 => refusal("there is no request on standard input"),
                NextRequest::End => return Ok(()),
            };
            n_answers += 1;
            match write(&mut *output, &answer).await {
                // The reader has closed the pipe: nobody waits for an answer.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                written => written?,
            }
        }
    }

    async fn answer(&mut self, request: &[u8]) -> RawJson {
        if self.forwards
            && self.own.is_none()
            && let Some(answer) = forwarded(request).await
        {
            return answer;
        }
        match self.own_plane().await {
            Ok(plane) => EndpointService::new(plane).answer(request).await,
            Err(failure) => {
                self.console.failure(&failure);
                let message = format!("{}; its standard error tells more", failure.message);
                EndpointService::failure(&ToolError::new(ErrorKind::Internal, message))
            }
        }
    }

    async fn own_plane(&mut self) -> Result<Toolplane, CliError> {
        if let Some(plane) = &self.own {
            return Ok(plane.clone());
        }
        let opened = config::open(
            &self.options,
            ChaosLayer::default(),
            &self.telemetry,
            self.console,
        );
        let (_, plane) = opened.await?;
        Ok(self.own.insert(plane).clone())
    }

    async fn shutdown(self) {
        if let Some(plane) = self.own {
            plane.shutdown().await;
        }
        self.telemetry.shutdown(EXPORT_TIMEOUT).await;
    }
}

/// Returns the answer of the user's running gateway. `None` if none runs, or it does not know the protocol.
async fn forwarded(request: &[u8]) -> Option<RawJson> {
    let (gateway, client) = gateways::latest().await?;
    let error = match client.endpoint(request).await {
        Ok(answer) => return Some(answer),
        Err(error) => error,
    };
    tracing::debug!(gateway = gateway.process(), %error, "the gateway did not answer");
    let error = match error {
        OperatorClientError::Refused { kind, .. } if kind == "not_found" => return None,
        OperatorClientError::Refused { message, .. } => ToolError::new(ErrorKind::Overloaded, message),
        // The request was sent: the gateway may have called the tool.
        error => ToolError::new(
            ErrorKind::OutcomeUnknown,
            format!("{error}; whether the tool ran is not known"),
        ),
    };
    Some(EndpointService::failure(&error))
}

fn refusal(reason: &str) -> RawJson {
    EndpointService::failure(&ToolError::new(ErrorKind::InvalidArguments, reason))
}

/// Writes an answer as one line.
async fn write(output: &mut (dyn AsyncWrite + Send + Unpin), answer: &RawJson) -> io::Result<()> {
    // A line break outside of a text has no meaning in JSON, and none is inside of one.
    let mut line = answer.as_str().replace(['\n', '\r'], " ");
    line.push('\n');
    output.write_all(line.as_bytes()).await?;
    output.flush().await
}
