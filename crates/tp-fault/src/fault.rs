use std::{fmt, str::FromStr, time::Duration};

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the client.
    Request,
    /// To the client.
    Response,
}

/// How an exchange breaks off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConnectionEnding {
    /// In order, in both directions. A wrapped program sees the end of its input and may do what it still can.
    Close,
    /// The client's connection is reset; that of the upstream is closed in order, so that it is known what it did. A wrapped
    /// program is killed.
    Reset,
    /// Only the direction that is cut ends: what comes the other way is still passed on.
    HalfClose,
}

/// One thing that goes wrong with an exchange.
///
/// All faults of an exchange act together. Each has a spelling, for the command line and for [`FromStr`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The first byte waits for so long: a time between the two, by the seed. `delay:response=200ms..900ms`
    Delay {
        /// Whose first byte.
        direction: Direction,
        /// The shortest time.
        min: Duration,
        /// The longest time.
        max: Duration,
    },
    /// Bytes are passed on at this rate. `rate:response=32000`
    Rate {
        /// Which bytes.
        direction: Direction,
        /// How many in a second.
        per_second: u32,
    },
    /// Bytes are passed on in pieces with a pause in between. `drip:response=1@100ms`
    Drip {
        /// Which bytes.
        direction: Direction,
        /// How large a piece is.
        bytes: usize,
        /// How long the pause is.
        every: Duration,
    },
    /// So many bytes are passed on, and then the exchange breaks off. `cut:request=17`, `reset:response=0`,
    /// `half-close:request=9`
    Cut {
        /// Which bytes.
        direction: Direction,
        /// How many are passed on.
        after: u64,
        /// How it breaks off.
        ending: ConnectionEnding,
    },
    /// Everything is taken, nothing is passed on and nothing answered. `black-hole`
    BlackHole,
    /// An HTTP request is answered with a status, and not passed on. `status=503`, `status=429;retry-after=2`
    Status {
        /// The status.
        status: u16,
        /// What `Retry-After` says, if it is there.
        retry_after: Option<String>,
    },
    /// A wrapped program says this line before it answers. `garbage=npm warn deprecated`
    Garbage(String),
    /// A wrapped program ends in the place of reading the message, with this exit code. `exit=1`
    Exit(u8),
    /// A wrapped program ends before it reads anything, with this exit code. `crash=1`
    Crash(u8),
    /// A wrapped program reads nothing from this message on, so that its pipe fills up. `stop-reading`
    StopReading,
}

/// A text that spells no [`Fault`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no fault: {reason}")]
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
    let value = || value.ok_or_else(|| format!("it has no value; {KINDS}"));
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
        status => Err(format!("{status} is no status of an answer, from 200 to 599")),
    }
}

fn number<N: FromStr>(text: &str) -> Result<N, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is not a number that fits there"))
}

fn time(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no time; write it like `100ms` or `2s`");
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
