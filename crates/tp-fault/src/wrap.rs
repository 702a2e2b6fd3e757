use std::{
    ffi::OsString,
    future::pending,
    io,
    os::unix::process::ExitStatusExt as _,
    process::{ExitStatus, Stdio},
};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader},
    process::{ChildStdin, ChildStdout, Command},
    sync::mpsc,
};

use crate::{
    ConnectionEnding, Direction, FaultEvent, History, Plan,
    exchange_plan::{ExchangePlan, PlanState, Replacement},
    plan::FaultTarget,
    shaper::{Shaper, StopReason},
};

/// Options of [`wrap`].
#[derive(Debug, Clone)]
pub struct WrapOptions {
    /// Program to run.
    pub program: OsString,
    /// Arguments of the program.
    pub arguments: Vec<OsString>,
    /// Faults to inject.
    pub plan: Plan,
    /// History of its events.
    pub history: History,
}

/// Runs a program and forwards its stdin and stdout, with faults, until it ends. Returns its exit code, or the one of
/// the plan; for a program that a signal ended 128 plus the signal's number, as in a shell.
///
/// A line of the client begins an exchange. The program inherits the environment and stderr of this process. Output
/// before the first line of the client is forwarded unchanged.
///
/// # Errors
/// If the plan has a fault that only applies to connections, or the program cannot be started.
pub async fn wrap<R, W>(options: WrapOptions, input: R, mut output: W) -> io::Result<u8>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    options.plan.check(FaultTarget::Program)?;
    let history = options.history;
    history.add(0, FaultEvent::Started);
    let planned = PlanState::new(options.plan);
    if let Some(code) = planned.crash() {
        history.add(0, FaultEvent::Ended);
        return Ok(code);
    }
    let mut child = Command::new(&options.program)
        .args(&options.arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut stdout = child.stdout.take().expect("it is piped");
    let (sender, answers) = mpsc::unbounded_channel();
    let mut forward = InputPump {
        planned,
        history: history.clone(),
        answers: sender,
        stdin: child.stdin.take(),
        next: 0,
    };
    let mut back = OutputPump {
        history: history.clone(),
        answers,
        now: ResponseState::default(),
    };
    let over = tokio::select! {
        over = forward.run(input) => over,
        over = back.run(&mut stdout, &mut output) => over,
    };
    forward.stdin = None;
    let code = match over {
        ExchangeEnd::Exit(code) => {
            child.kill().await?;
            code
        }
        // The program has this part of its input and acts on it.
        ExchangeEnd::Cut(Direction::Request, ConnectionEnding::Close) => {
            discard(&mut stdout).await;
            code_of(child.wait().await?)
        }
        ExchangeEnd::Cut(..) => {
            child.kill().await?;
            1
        }
        ExchangeEnd::Ended => code_of(child.wait().await?),
    };
    output.flush().await?;
    history.add(back.now.exchange, FaultEvent::Ended);
    Ok(code)
}

/// Reason why the program's work is over.
enum ExchangeEnd {
    Exit(u8),
    Cut(Direction, ConnectionEnding),
    /// The program closed its output, or the client closed its input.
    Ended,
}

/// Effect of an exchange on the program's output.
#[derive(Default)]
struct ResponseState {
    exchange: u64,
    lane: Shaper,
    garbage: Vec<String>,
    /// `true` if nothing is forwarded.
    is_mute: bool,
    /// `true` if the beginning of the answer was recorded, or if there is no request yet.
    is_noted: bool,
}

/// Forwards lines to the program.
struct InputPump {
    planned: PlanState,
    history: History,
    answers: mpsc::UnboundedSender<ResponseState>,
    stdin: Option<ChildStdin>,
    next: u64,
}

/// Forwards output of the program.
struct OutputPump {
    history: History,
    answers: mpsc::UnboundedReceiver<ResponseState>,
    now: ResponseState,
}

impl InputPump {
    async fn run(&mut self, input: impl AsyncRead + Unpin) -> ExchangeEnd {
        let mut input = BufReader::new(input);
        let mut line = Vec::new();
        loop {
            line.clear();
            if !matches!(input.read_until(b'\n', &mut line).await, Ok(1..)) {
                self.history.add(self.next.saturating_sub(1), FaultEvent::Left);
                self.stdin = None;
                // The program ends after the end of its input.
                return pending().await;
            }
            // Without its stdin, the program receives no more lines.
            if self.stdin.is_some()
                && let Some(over) = self.line(&line).await
            {
                return over;
            }
        }
    }

    /// Forwards one line. Returns the reason if that was the end.
    async fn line(&mut self, line: &[u8]) -> Option<ExchangeEnd> {
        let exchange = self.next;
        self.next += 1;
        let bytes = line.len();
        self.history.add(exchange, FaultEvent::Request { bytes });
        let ExchangePlan {
            request: mut lane,
            response,
            instead,
            garbage,
            faults,
        } = self.planned.course(line);
        for fault in faults {
            self.history.add(exchange, FaultEvent::Met(fault));
        }
        let is_swallowed = instead == Some(Replacement::Swallow);
        // The receiver is gone at the end.
        let _ = self.answers.send(ResponseState {
            exchange,
            lane: response,
            garbage,
            is_mute: is_swallowed,
            is_noted: false,
        });
        match instead {
            Some(Replacement::Exit(code)) => return Some(ExchangeEnd::Exit(code)),
            Some(Replacement::StopReading) => return pending().await,
            _ if is_swallowed => return None,
            _ => {}
        }
        let stdin = self.stdin.as_mut()?;
        match lane.pass(line, stdin).await {
            // The program may have answered before it closed its input.
            Ok(()) | Err(StopReason::Gone) => None,
            Err(StopReason::Cut(after, ending)) => {
                let direction = Direction::Request;
                self.history.add(exchange, FaultEvent::Cut { direction, after });
                if ending != ConnectionEnding::HalfClose {
                    return Some(ExchangeEnd::Cut(direction, ending));
                }
                self.stdin = None;
                None
            }
        }
    }
}

impl OutputPump {
    async fn run(&mut self, stdout: &mut ChildStdout, output: &mut (impl AsyncWrite + Unpin)) -> ExchangeEnd {
        // Output before the first request is no answer.
        self.now.is_noted = true;
        let mut buffer = vec![0; BUFFER];
        loop {
            let length = tokio::select! {
                // The effects of an exchange must be known before its output.
                biased;
                Some(next) = self.answers.recv() => {
                    self.now = next;
                    if self.garble(output).await.is_err() {
                        return ExchangeEnd::Ended;
                    }
                    continue;
                }
                read = stdout.read(&mut buffer) => match read {
                    Ok(length @ 1..) => length,
                    _ => return ExchangeEnd::Ended,
                },
            };
            if self.now.is_mute {
                continue;
            }
            let exchange = self.now.exchange;
            if !std::mem::replace(&mut self.now.is_noted, true) {
                self.history.add(exchange, FaultEvent::Answering);
            }
            let direction = Direction::Response;
            if let Some(after) = self.now.lane.cut_within(length) {
                self.history.add(exchange, FaultEvent::Cut { direction, after });
            }
            match self.now.lane.pass(&buffer[..length], output).await {
                Ok(()) => {}
                Err(StopReason::Gone) => return ExchangeEnd::Ended,
                Err(StopReason::Cut(_, ending)) => return ExchangeEnd::Cut(direction, ending),
            }
        }
    }

    /// Prints the garbage before the answer.
    async fn garble(&mut self, output: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        for line in &self.now.garbage {
            output.write_all(format!("{line}\n").as_bytes()).await?;
        }
        output.flush().await
    }
}

/// Size of the read buffer, in bytes.
const BUFFER: usize = 16 * 1024;

async fn discard(stdout: &mut ChildStdout) {
    let mut buffer = vec![0; BUFFER];
    while matches!(stdout.read(&mut buffer).await, Ok(1..)) {}
}

fn code_of(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(u8::MAX)
}
