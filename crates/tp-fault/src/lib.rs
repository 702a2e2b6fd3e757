//! Faults on real sockets and pipes, to see what becomes of calls: a [`Proxy`] in front of anything that listens, a
//! [wrapper](wrap) around a program that speaks over stdin and stdout, and a [`ExecutionCounter`], a server that counts what was done.
//!
//! A [`Plan`] says which [`Fault`]s which exchanges meet. What chance decides comes from the plan's seed and the number of
//! the exchange alone, so the same seed gives the same faults. The [`History`] has all that happened, as JSON lines too. In
//! tests all of this runs in the same process; `tp-fault` is the same as a program.
//!
//! What one *message* of an MCP server does wrong is scripted with `mcp-mock`; here are the faults of what is between two
//! programs, which know nothing of messages.
//!
//! ```
//! use tokio::{io::{AsyncReadExt, AsyncWriteExt}, net::TcpStream};
//! use tp_fault::{Ledger, Plan, Proxy};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The answer breaks off behind its ninth byte. What was asked for is done all the same.
//! let ledger = Ledger::start().await?;
//! let proxy = Proxy::start(ledger.address(), Plan::new(["cut:response=9".parse()?])).await?;
//!
//! let mut client = TcpStream::connect(proxy.address()).await?;
//! client.write_all(b"POST /?id=pay-7 HTTP/1.1\r\ncontent-length: 0\r\n\r\n").await?;
//! let mut answer = String::new();
//! client.read_to_string(&mut answer).await?;
//! assert_eq!(answer, "HTTP/1.1 ");
//! assert_eq!(ledger.executions("pay-7"), 1);
//! # Ok(())
//! # }
//! ```

mod exchange;
mod exchange_plan;
mod execution_counter;
mod fault;
mod history;
mod plan;
mod proxy;
mod request_reader;
mod shaper;
mod wrap;

pub use self::{
    execution_counter::{ExecutionCounter, ExecutionCounterOptions},
    fault::{ConnectionEnding, Direction, Fault, FaultError},
    history::{FaultEvent, History, HistoryEntry},
    plan::Plan,
    proxy::{Proxy, ProxyOptions},
    wrap::{WrapOptions, wrap},
};
