//! A client under measurement, its transports, and the code that all clients have in common.

use std::{fs, future::Future, pin::Pin, str::FromStr, sync::Arc, time::Duration};

use anyhow::{Error, Result, bail, ensure};
use tokio::time::Instant;

/// Transport between client and server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Stdio,
    /// 2026-07-28: no session, responses in JSON.
    HttpJson,
    /// 2025-11-25: a session, responses as event streams.
    HttpSession,
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
