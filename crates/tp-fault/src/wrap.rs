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

/// What is wrapped by [`wrap`], and what goes wrong with it.
#[derive(Debug, Clone)]
pub struct WrapOptions {
    /// The program.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// What goes wrong.
    pub plan: Plan,
    /// Where it is written down what happens.
    pub history: History,
}

/// Runs a program and stands between it and its client, on `input` and `output`, until it ends. Returns its exit code, or
/// the one with which it is to end by its plan; what a signal ended has 128 and the signal's number, as in a shell.
///
/// A line of the client begins an exchange. The program has the environment of this process, and its stderr. Output that it
/// makes before a line of the client has arrived is passed on as it is.
///
/// # Errors
/// When the plan holds a fault that only connections have, or the program cannot be started.
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
        // It has so much of its input, and does with it what it does.
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

/// Why it is over.
enum ExchangeEnd {
    Exit(u8),
    Cut(Direction, ConnectionEnding),
    /// The program has closed its output, or nobody reads that any longer.
    Ended,
}

/// What an exchange means for what the program says.
#[derive(Default)]
struct ResponseState {
    exchange: u64,
    lane: Shaper,
    garbage: Vec<String>,
    /// Nothing is passed on.
    is_mute: bool,
    /// Something was passed on, or there is nothing to answer yet.
    is_noted: bool,
}

/// The direction to the program.
struct InputPump {
    planned: PlanState,
    history: History,
    answers: mpsc::UnboundedSender<ResponseState>,
    stdin: Option<ChildStdin>,
    next: u64,
}

/// The direction from the program.
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
                // The program is told by the end of its input, and ends then.
                return pending().await;
            }
            // Without its input, it is none of the program's business any more.
            if self.stdin.is_some()
                && let Some(over) = self.line(&line).await
            {
                return over;
            }
        }
    }

    /// One line of the client; tells if that was the end.
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
        // Nobody is there to take it when all is over.
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
            // It may have said something before it closed its input.
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
        // Nothing is an answer yet.
        self.now.is_noted = true;
        let mut buffer = vec![0; BUFFER];
        loop {
            let length = tokio::select! {
                // What an exchange means comes before what the program says in it.
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

    /// Says what is said before the answer.
    async fn garble(&mut self, output: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        for line in &self.now.garbage {
            output.write_all(format!("{line}\n").as_bytes()).await?;
        }
        output.flush().await
    }
}

/// How much is read at once.
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
