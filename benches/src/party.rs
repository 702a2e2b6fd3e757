//! Measured clients, their transports, and the code that they have in common.

use std::{fs, future::Future, pin::Pin, str::FromStr, sync::Arc, time::Duration};

use anyhow::{Error, Result, bail, ensure};
use tokio::time::Instant;

use crate::{
    bare::{BareHttp, BareStdio},
    ours::Ours,
    peer::Rmcp,
};

/// Measured client.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Party {
    Ours,
    /// Minimal client: a writer, a reader and a map; over HTTP hyper's pooled client.
    Bare,
    /// rmcp with its defaults: over HTTP a new TCP connection for each call, and 16 of them at once.
    Rmcp,
    /// rmcp over HTTP with a client that keeps its connections, and 64 calls at once.
    RmcpPooled,
}

/// Transport between client and server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Stdio,
    /// 2026-07-28: no session, responses in JSON.
    HttpJson,
    /// 2025-11-25: a session, responses as event streams.
    HttpSession,
}

impl Party {
    pub fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Bare => "bare",
            Self::Rmcp => "rmcp",
            Self::RmcpPooled => "rmcp-pooled",
        }
    }

    /// Opens a connection; `server` is the URL for HTTP.
    pub async fn open(self, way: Way, server: &str) -> Result<Arc<dyn Measured>> {
        Ok(match (self, way) {
            (Self::Ours, _) => Arc::new(Ours::open(way, server).await?),
            (Self::Bare, Way::Stdio) => Arc::new(BareStdio::open()?),
            (Self::Bare, _) => Arc::new(BareHttp::open(way, server).await?),
            (Self::Rmcp, _) => Arc::new(Rmcp::open(way, server, false).await?),
            (Self::RmcpPooled, _) => Arc::new(Rmcp::open(way, server, true).await?),
        })
    }
}

impl Way {
    pub const ALL: [Self; 3] = [Self::Stdio, Self::HttpJson, Self::HttpSession];

    pub fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::HttpJson => "http-json",
            Self::HttpSession => "http-session",
        }
    }

    /// Mode of the HTTP server that speaks it.
    pub fn mode(self) -> Option<&'static str> {
        match self {
            Self::Stdio => None,
            Self::HttpJson => Some("json"),
            Self::HttpSession => Some("session"),
        }
    }

    pub fn parties(self) -> &'static [Party] {
        match self {
            Self::Stdio => &[Party::Ours, Party::Bare, Party::Rmcp],
            _ => &[Party::Ours, Party::Bare, Party::Rmcp, Party::RmcpPooled],
        }
    }
}

impl FromStr for Party {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let all = [Self::Ours, Self::Bare, Self::Rmcp, Self::RmcpPooled];
        match all.into_iter().find(|party| party.name() == name) {
            Some(party) => Ok(party),
            None => bail!("there is no party `{name}`"),
        }
    }
}

impl FromStr for Way {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match Self::ALL.into_iter().find(|way| way.name() == name) {
            Some(way) => Ok(way),
            None => bail!("there is no way `{name}`"),
        }
    }
}

/// Client that can call the tool `echo`.
pub trait Client: Send + Sync + 'static {
    /// Makes a call. Fails unless its own text comes back.
    fn call(&self, payload: String) -> impl Future<Output = Result<()>> + Send;
}

/// Measurements of one block of calls.
pub struct Block {
    /// Median duration of a call.
    pub latency: Duration,
    /// Duration of the whole block.
    pub elapsed: Duration,
    /// Processor time of this process.
    pub processor: Duration,
}

/// Type-erased client, at a cost for each block rather than for each call.
pub trait Measured: Send + Sync {
    fn block(
        self: Arc<Self>,
        width: usize,
        count: usize,
        bytes: usize,
    ) -> Pin<Box<dyn Future<Output = Result<Block>> + Send>>;
}

impl<C: Client> Measured for C {
    /// Makes `count` calls, `width` of them at once, each with its own text.
    fn block(
        self: Arc<Self>,
        width: usize,
        count: usize,
        bytes: usize,
    ) -> Pin<Box<dyn Future<Output = Result<Block>> + Send>> {
        Box::pin(async move {
            let (start, processor) = (Instant::now(), processor_time());
            let workers = (0..width).map(|worker| {
                let client = Arc::clone(&self);
                tokio::spawn(async move {
                    let mut latencies = Vec::with_capacity(count / width);
                    for index in 0..count / width {
                        let mut payload = format!("{worker:03}-{index:07}-");
                        payload.extend(std::iter::repeat_n('x', bytes - payload.len()));
                        let start = Instant::now();
                        client.call(payload).await?;
                        latencies.push(start.elapsed());
                    }
                    Ok::<_, Error>(latencies)
                })
            });
            let workers: Vec<_> = workers.collect();
            let mut latencies = Vec::with_capacity(count);
            for worker in workers {
                latencies.extend(worker.await??);
            }
            let (elapsed, processor) = (start.elapsed(), processor_time().saturating_sub(processor));
            latencies.sort_unstable();
            Ok(Block {
                latency: latencies[latencies.len() / 2],
                elapsed,
                processor,
            })
        })
    }
}

/// Processor time of the threads of this process, as the scheduler reports it in nanoseconds.
fn processor_time() -> Duration {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let ran = threads.filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(ran.sum())
}

/// Params of a call, as JSON.
pub fn params(payload: &str) -> String {
    format!(r#"{{"name":"echo","arguments":{{"payload":"{payload}"}}}}"#)
}

/// Fails unless a result contains the text that was sent. Searches only at the expected offset, so a large one costs
/// little.
pub fn check(result: &str, payload: &str) -> Result<()> {
    const BEFORE: &str = r#""text":""#;
    let text = result.find(BEFORE).map(|at| &result[at + BEFORE.len()..]);
    ensure!(
        text.is_some_and(|text| text.starts_with(payload)),
        "the answer is about another call"
    );
    Ok(())
}
