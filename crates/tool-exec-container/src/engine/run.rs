//! The life of one container.

use std::{sync::Arc, time::Duration};

use bollard::{
    container::{AttachContainerResults, LogOutput},
    errors::Error,
    models::ContainerCreateBody,
    query_parameters::{
        AttachContainerOptions, AttachContainerOptionsBuilder, CreateContainerOptionsBuilder,
        InspectContainerOptions, KillContainerOptionsBuilder, RemoveContainerOptionsBuilder,
        StartContainerOptions, WaitContainerOptions,
    },
};
use futures_util::{Stream, StreamExt};
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    sync::oneshot,
    time::{Instant, sleep, sleep_until, timeout},
};
use tool_core::Dispatch;
use tool_settings::program::ProgramLimits;
use tracing::warn;

use super::{Engine, EngineError, Runs};

/// Time that an engine gets to make or remove a container after its call has ended.
const PATIENCE: Duration = Duration::from_secs(60);
/// Number of times that an engine is asked to attach to a container.
const MAX_ATTACHES: u32 = 3;
/// Pause before it is asked again.
const ATTACH_PAUSE: Duration = Duration::from_millis(100);
/// Exit code of a program that was ended by `SIGKILL`.
const KILLED: i64 = 128 + 9;
/// Exit code of a program that reached its limit of processor time (`SIGXCPU`).
const OUT_OF_CPU_TIME: i64 = 128 + 24;

/// End of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContainerExit {
    /// Exit code, which is 128 and the number of the signal if one ended the program.
    Code(i32),
    /// The limit of time, or of processor time.
    TimedOut,
    /// The limit of memory.
    OutOfMemory,
    /// The limit of output.
    OutputLimit,
}

/// Result of a container.
#[derive(Debug)]
pub(crate) struct RunResult {
    pub(crate) exit: ContainerExit,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// Everything that one container needs.
pub(crate) struct Job {
    pub(crate) name: String,
    pub(crate) body: ContainerCreateBody,
    pub(crate) stdin: Vec<u8>,
    pub(crate) limits: ProgramLimits,
    pub(crate) dispatch: Arc<Dispatch>,
}

/// Recipient of a container's result.
pub(crate) type ReplySender = oneshot::Sender<Result<RunResult, EngineError>>;

impl RunResult {
    fn timed_out() -> Self {
        Self {
            exit: ContainerExit::TimedOut,
            stdout: Vec::new(),
            stderr: Vec::new(),
        }
    }

    /// Returns `true` if the container ended by itself.
    fn has_ended(&self) -> bool {
        matches!(self.exit, ContainerExit::Code(_) | ContainerExit::OutOfMemory)
    }
}

/// Runs a container, sends its result, and removes it. If nobody waits for the result any more, the container is killed at once.
/// Returns `true` if the container ended by itself.
///
/// # Cancellation
/// The future is to be run to its end, in a task of its own: otherwise the container stays.
pub(crate) async fn run(engine: Arc<Engine>, job: Job, mut reply: ReplySender, runs: Arc<Runs>) -> bool {
    let _running = runs.begin();
    let deadline = Instant::now() + job.limits.wall_time;
    let options = CreateContainerOptionsBuilder::new().name(&job.name).build();
    let create = timeout(PATIENCE, engine.docker.create_container(Some(options), job.body));
    tokio::pin!(create);
    let created = tokio::select! {
        created = &mut create => created,
        result = stopped(&mut reply, deadline, &runs) => {
            let _ = reply.send(result);
            // A request that is cut off can still make a container: its answer is awaited.
            let _ = create.await;
            clean_up(&engine, &job.name).await;
            return false;
        }
    };
    let created = created.unwrap_or(Err(Error::RequestTimeoutError));
    if let Err(error) = created {
        let is_answer = matches!(error, Error::DockerResponseServerError { .. });
        let _ = reply.send(Err(EngineError::of("make the container", error)));
        if !is_answer {
            clean_up(&engine, &job.name).await;
        }
        return is_answer;
    }
    let result = tokio::select! {
        attended = attend(&engine, &job.name, job.stdin, &job.limits, &job.dispatch) => attended,
        result = stopped(&mut reply, deadline, &runs) => result,
    };
    let is_over = result.as_ref().is_ok_and(RunResult::has_ended);
    if is_over {
        job.dispatch.answered();
    } else {
        // Before the reply: what a caller was told to have ended does not run.
        kill(&engine, &job.name).await;
    }
    // So that containers are not made faster than they are removed.
    let _removal = runs.removal().await;
    let _ = reply.send(result);
    clean_up(&engine, &job.name).await;
    is_over
}

/// Waits until nobody waits for a reply, the deadline has passed, or the gateway stops. Returns the result of a container that is
/// stopped for that.
async fn stopped(reply: &mut ReplySender, deadline: Instant, runs: &Runs) -> Result<RunResult, EngineError> {
    tokio::select! {
        () = reply.closed() => Ok(RunResult::timed_out()),
        () = sleep_until(deadline) => Ok(RunResult::timed_out()),
        () = runs.stopping() => {
            let (action, message) = ("run the container to its end", "the gateway stops".to_owned());
            Err(EngineError::Lost { action, message })
        }
    }
}

/// Attaches to a container that was not started. Podman starts a monitor for it then, and sometimes fails because the monitor does not
/// listen yet. Nothing has run, so that another try is safe.
async fn attach_to(
    engine: &Engine,
    name: &str,
    options: AttachContainerOptions,
) -> Result<AttachContainerResults, EngineError> {
    let mut tries_left = MAX_ATTACHES;
    loop {
        tries_left -= 1;
        match engine.docker.attach_container(name, Some(options.clone())).await {
            Err(Error::DockerResponseServerError {
                status_code: 500.., ..
            }) if tries_left > 0 => {
                sleep(ATTACH_PAUSE).await;
            }
            attached => return attached.map_err(|error| EngineError::of("attach to the container", error)),
        }
    }
}

/// Starts a container, gives it its input, and returns how it ended.
async fn attend(
    engine: &Engine,
    name: &str,
    stdin: Vec<u8>,
    limits: &ProgramLimits,
    dispatch: &Dispatch,
) -> Result<RunResult, EngineError> {
    // Two connections: podman loses output on a connection whose input the program has not read.
    let attach = AttachContainerOptionsBuilder::new().stream(true);
    let for_output = attach.clone().stdout(true).stderr(true).build();
    let for_input = attach.stdin(true).build();
    let output = attach_to(engine, name, for_output).await?.output;
    let input = attach_to(engine, name, for_input).await?.input;
    dispatch.sent();
    let started = engine
        .docker
        .start_container(name, None::<StartContainerOptions>)
        .await;
    started.map_err(|error| {
        // An engine that answers has not started the program.
        if matches!(error, Error::DockerResponseServerError { .. }) {
            dispatch.not_taken();
        }
        EngineError::of("start the container", error)
    })?;
    let (is_whole, kept) = {
        let write = write(input, stdin);
        let read = read(output, limits.output);
        tokio::pin!(read);
        tokio::select! {
            kept = &mut read => kept?,
            // A program that does not read its input still writes output.
            () = write => read.await?,
        }
    };
    if !is_whole {
        return Ok(kept.ended(ContainerExit::OutputLimit));
    }
    let exit = wait(engine, name).await?;
    Ok(kept.ended(exit))
}

/// Output that was read.
#[derive(Default)]
struct Kept {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Kept {
    fn ended(self, exit: ContainerExit) -> RunResult {
        RunResult {
            exit,
            stdout: self.stdout,
            stderr: self.stderr,
        }
    }
}

/// Writes the input of a program, and closes it. A program may end or close its input before it has read it all.
async fn write(mut input: impl AsyncWrite + Unpin, bytes: Vec<u8>) {
    if input.write_all(&bytes).await.is_ok() {
        let _ = input.shutdown().await;
    }
}

/// Reads output until it ends, or is longer than the limit. Returns whether it is whole.
async fn read(
    mut output: impl Stream<Item = Result<LogOutput, Error>> + Unpin,
    limit: u64,
) -> Result<(bool, Kept), EngineError> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut kept = Kept::default();
    while let Some(piece) = output.next().await {
        let piece = piece.map_err(|error| EngineError::of("send the output of the container", error))?;
        let (stream, message) = match piece {
            LogOutput::StdErr { message } => (&mut kept.stderr, message),
            LogOutput::StdOut { message } | LogOutput::Console { message } => (&mut kept.stdout, message),
            LogOutput::StdIn { .. } => continue,
        };
        let room = limit.saturating_sub(stream.len());
        stream.extend_from_slice(&message[..message.len().min(room)]);
        if message.len() > room {
            return Ok((false, kept));
        }
    }
    Ok((true, kept))
}

/// Waits until the container has ended, and returns how.
async fn wait(engine: &Engine, name: &str) -> Result<ContainerExit, EngineError> {
    let mut ends = engine.docker.wait_container(name, None::<WaitContainerOptions>);
    let code = match ends.next().await {
        Some(Ok(end)) => end.status_code,
        Some(Err(Error::DockerContainerWaitError { code, .. })) => code,
        Some(Err(error)) => return Err(EngineError::of("wait for the container", error)),
        None => {
            let (action, message) = ("wait for the container", "the connection was closed".to_owned());
            return Err(EngineError::Lost { action, message });
        }
    };
    if code == OUT_OF_CPU_TIME {
        return Ok(ContainerExit::TimedOut);
    }
    if code != 0 && ran_out_of_memory(engine, name, code).await {
        return Ok(ContainerExit::OutOfMemory);
    }
    Ok(ContainerExit::Code(i32::try_from(code).unwrap_or(i32::MAX)))
}

/// Returns `true` if the kernel ended a process of a container because of its limit of memory.
async fn ran_out_of_memory(engine: &Engine, name: &str, code: i64) -> bool {
    let about = engine
        .docker
        .inspect_container(name, None::<InspectContainerOptions>)
        .await;
    let state = about.ok().and_then(|about| about.state);
    let is_reported = state.and_then(|state| state.oom_killed).unwrap_or_default();
    // podman does not report it on every machine. Nothing outside of a container but the kernel kills its program.
    is_reported || (code == KILLED && engine.about.is_podman())
}

async fn kill(engine: &Engine, name: &str) {
    let options = KillContainerOptionsBuilder::new().signal("SIGKILL").build();
    // A container that has ended or did not start cannot be killed, and one that cannot be killed is removed by force.
    let _ = timeout(PATIENCE, engine.docker.kill_container(name, Some(options))).await;
}

/// Removes a container that may still run.
pub(super) async fn remove(engine: &Engine, name: &str) -> Result<(), Error> {
    let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
    let removed = timeout(PATIENCE, engine.docker.remove_container(name, Some(options))).await;
    match removed.unwrap_or(Err(Error::RequestTimeoutError)) {
        // Another one removes it or has done so.
        Err(Error::DockerResponseServerError {
            status_code: 404 | 409,
            ..
        }) => Ok(()),
        removed => removed,
    }
}

async fn clean_up(engine: &Engine, name: &str) {
    if let Err(error) = remove(engine, name).await {
        warn!(container = name, %error, "a container was not removed; the next gateway removes it");
    }
}
