//! Programs of a spawner.

use std::{sync::Arc, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
};

use super::{
    Command, Process, ProcessEnd, ProgramControl, SpawnedProgram, Spawner, Stop, stderr_tail::StderrTail,
};
use crate::{ClientError, ClientErrorKind};

impl Process {
    /// Has a spawner start the program. The task that ends it runs until it is gone.
    pub(crate) async fn spawn_by(
        spawner: &dyn Spawner,
        command: &Command,
        grace: Duration,
    ) -> Result<
        (
            Self,
            impl AsyncWrite + Unpin + Send + use<>,
            impl AsyncRead + Unpin + Send + use<>,
        ),
        ClientError,
    > {
        let started = spawner.spawn(command).await.map_err(|reason| {
            ClientError::new(ClientErrorKind::StartFailed {
                reason,
                stderr: String::new(),
            })
        })?;
        let SpawnedProgram {
            stdin,
            stdout,
            stderr,
            control,
        } = started;
        let (stop, stopped) = watch::channel(Stop::No);
        let (exited, exit) = watch::channel(None);
        let name = command.program().to_string_lossy().into_owned();
        let stderr: Arc<StderrTail> = StderrTail::drain(stderr, name);
        tokio::spawn(async move {
            let end = supervise(control, stopped, grace).await;
            exited.send_replace(Some(ProcessEnd::Spawned(end)));
        });
        let process = Self {
            group: None,
            stop,
            exit,
            stderr,
        };
        Ok((process, stdin, stdout))
    }
}

/// Waits for the program to end by itself or on request. The future owns the control: where it is dropped with its runtime,
/// the program is killed.
async fn supervise(
    mut control: Box<dyn ProgramControl>,
    mut stop: watch::Receiver<Stop>,
    grace: Duration,
) -> String {
    let requested = tokio::select! {
        end = control.wait() => return end,
        requested = stop.wait_for(|stop| *stop > Stop::No) => requested.map_or(Stop::Now, |stop| *stop),
    };
    if requested == Stop::Orderly {
        tokio::select! {
            end = control.wait() => return end,
            // Also ready if every handle was dropped.
            _ = stop.wait_for(|stop| *stop == Stop::Now) => {}
            () = tokio::time::sleep(grace) => {}
        }
    }
    control.kill();
    control.wait().await
}
