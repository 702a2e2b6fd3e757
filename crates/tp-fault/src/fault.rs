use std::{fmt, str::FromStr, time::Duration};

/// Direction of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the client.
    Request,
    /// To the client.
    Response,
}

/// Way in which an exchange breaks off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConnectionEnding {
    /// Regular close, in both directions. A wrapped program sees the end of its input and may finish its work.
    Close,
    /// Reset of the client's connection; the upstream's is closed regularly, so that its reaction can be observed. A
    /// wrapped program is killed.
    Reset,
    /// Close of the cut direction only: the other one is still forwarded.
    HalfClose,
}

/// A fault of an exchange.
///
/// All faults of an exchange act together. Each has a spelling, for the command line and for [`FromStr`].
///
/// # Examples
///
/// ```
/// use tp_fault::Fault;
///
/// let fault: Fault = "cut:response=17".parse()?;
/// assert_eq!(fault.to_string(), "cut:response=17");
/// # Ok::<(), tp_fault::FaultError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Delays the first byte by a seeded time between the two limits. `delay:response=200ms..900ms`
    Delay {
        /// Affected direction.
        direction: Direction,
        /// Minimum delay.
        min: Duration,
        /// Maximum delay.
        max: Duration,
    },
    /// Limits the rate of bytes. `rate:response=32000`
    Rate {
        /// Affected direction.
        direction: Direction,
        /// Bytes per second.
        per_second: u32,
    },
    /// Forwards bytes in pieces with pauses. `drip:response=1@100ms`
    Drip {
        /// Affected direction.
        direction: Direction,
        /// Size of a piece, in bytes.
        bytes: usize,
        /// Pause between two pieces.
        every: Duration,
    },
    /// Ends the exchange after a number of bytes. `cut:request=17`, `reset:response=0`, `half-close:request=9`
    Cut {
        /// Affected direction.
        direction: Direction,
        /// Number of forwarded bytes.
        after: u64,
        /// Way in which it breaks off.
        ending: ConnectionEnding,
    },
    /// Reads everything, forwards nothing and never answers. `black-hole`
    BlackHole,
    /// Answers an HTTP request with a status instead of forwarding it. `status=503`, `status=429;retry-after=2`
    Status {
        /// Status code.
        status: u16,
        /// Value of `Retry-After`, if any.
        retry_after: Option<String>,
    },
    /// Prints this line before the answer of a wrapped program. `garbage=npm warn deprecated`
    Garbage(String),
    /// Ends a wrapped program with this exit code instead of passing it the message. `exit=1`
    Exit(u8),
    /// Ends a wrapped program with this exit code before it reads anything. `crash=1`
    Crash(u8),
    /// Stops a wrapped program from reading, from this message on, so that its pipe fills up. `stop-reading`
    StopReading,
}

/// An invalid spelling of a [`Fault`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid fault `{text}`: {reason}")]
pub struct FaultError {
    text: String,
    reason: String,
}

const KINDS: &str = "write `delay:WAY=MIN..MAX`, `rate:WAY=BYTES`, `drip:WAY=BYTES@PAUSE`, `cut:WAY=BYTES`, `reset:WAY=BYTES`, \
    `half-close:WAY=BYTES`, `black-hole`, `status=CODE;retry-after=SECONDS`, `garbage=TEXT`, `exit=CODE`, `crash=CODE` or \
    `stop-reading`, where WAY is `request` or `response`";

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        parse(text).map_err(|reason| FaultError {
            text: text.to_owned(),
            reason,
        })
    }
}

fn parse(text: &str) -> Result<Fault, String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    let value = || value.ok_or_else(|| format!("missing value; {KINDS}"));
    match name.split_once(':') {
        Some((kind, direction)) => parse_directed(kind, Direction::from_str(direction)?, value()?),
        None => match name {
            "black-hole" => Ok(Fault::BlackHole),
            "stop-reading" => Ok(Fault::StopReading),
            "garbage" => Ok(Fault::Garbage(value()?.to_owned())),
            "exit" => number(value()?).map(Fault::Exit),
            "crash" => number(value()?).map(Fault::Crash),
            "status" => status(value()?),
            _ => Err(KINDS.to_owned()),
        },
    }
}

fn parse_directed(kind: &str, direction: Direction, value: &str) -> Result<Fault, String> {
    let cut = |ending| {
        let after = number(value)?;
        Ok(Fault::Cut {
            direction,
            after,
            ending,
        })
    };
    match kind {
        "delay" => {
            let (min, max) = value.split_once("..").unwrap_or((value, value));
            let (min, max) = (time(min)?, time(max)?);
            if min > max {
                return Err("the longest time is shorter than the shortest one".to_owned());
            }
            Ok(Fault::Delay { direction, min, max })
        }
        "rate" => match number(value)? {
            0 => Err("a rate of 0 is a `black-hole`".to_owned()),
            per_second => Ok(Fault::Rate {
                direction,
                per_second,
            }),
        },
        "drip" => {
            let (bytes, every) = value
                .split_once('@')
                .ok_or("a drip needs a size and a pause, such as `drip:response=1@100ms`")?;
            let every = time(every)?;
            match number(bytes)? {
                0 => Err("a piece has at least one byte".to_owned()),
                bytes => Ok(Fault::Drip {
                    direction,
                    bytes,
                    every,
                }),
            }
        }
        "cut" => cut(ConnectionEnding::Close),
        "reset" => cut(ConnectionEnding::Reset),
        "half-close" => cut(ConnectionEnding::HalfClose),
        _ => Err(KINDS.to_owned()),
    }
}

fn status(value: &str) -> Result<Fault, String> {
    let (status, retry_after) = match value.split_once(';') {
        None => (value, None),
        Some((status, rest)) => match rest.trim().strip_prefix("retry-after=") {
            Some(after) => (status, Some(after.to_owned())),
            None => return Err(format!("`{rest}` is not `retry-after=…`")),
        },
    };
    match number(status)? {
        status @ 200..=599 => Ok(Fault::Status { status, retry_after }),
        status => Err(format!("status {status} is not from 200 to 599")),
    }
}

fn number<N: FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("invalid number `{text}`"))
}

fn time(text: &str) -> Result<Duration, String> {
    let wrong = || format!("invalid time `{text}`; write it like `100ms` or `2s`");
    let at = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let amount: u32 = text[..at].parse().map_err(|_| wrong())?;
    match &text[at..] {
        "ms" => Ok(Duration::from_millis(amount.into())),
        "s" => Ok(Duration::from_secs(amount.into())),
        _ => Err(wrong()),
    }
}

impl FromStr for Direction {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "request" => Ok(Self::Request),
            "response" => Ok(Self::Response),
            _ => Err(format!("`{text}` is neither `request` nor `response`")),
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Request => "request",
            Self::Response => "response",
        })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delay { direction, min, max } => {
                write!(
                    f,
                    "delay:{direction}={}ms..{}ms",
                    min.as_millis(),
                    max.as_millis()
                )
            }
            Self::Rate {
                direction,
                per_second,
            } => write!(f, "rate:{direction}={per_second}"),
            Self::Drip {
                direction,
                bytes,
                every,
            } => write!(f, "drip:{direction}={bytes}@{}ms", every.as_millis()),
            Self::Cut {
                direction,
                after,
                ending,
            } => {
                let kind = match ending {
                    ConnectionEnding::Close => "cut",
                    ConnectionEnding::Reset => "reset",
                    ConnectionEnding::HalfClose => "half-close",
                };
                write!(f, "{kind}:{direction}={after}")
            }
            Self::BlackHole => f.write_str("black-hole"),
            Self::Status { status, retry_after } => match retry_after {
                None => write!(f, "status={status}"),
                Some(after) => write!(f, "status={status};retry-after={after}"),
            },
            Self::Garbage(text) => write!(f, "garbage={text}"),
            Self::Exit(code) => write!(f, "exit={code}"),
            Self::Crash(code) => write!(f, "crash={code}"),
            Self::StopReading => f.write_str("stop-reading"),
        }
    }
}
