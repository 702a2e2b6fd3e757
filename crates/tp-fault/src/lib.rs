//! Fault injection on real sockets and pipes: a [`Proxy`] in front of any listener, a [wrapper](wrap) around a program
//! with stdin and stdout, and an [`ExecutionCounter`], a server that counts executions.
//!
//! A [`Plan`] selects the exchanges and their [`Fault`]s. Random choices depend only on the plan's seed and the number
//! of the exchange, so the same seed gives the same faults. The [`History`] records all events, also as JSON lines.
//! Tests use the crate in the same process; the program `tp-fault` offers the same.
//!
//! Faults of single *messages* of an MCP server are scripted with `mcp-mock`; this crate has the faults of the
//! connection between two programs, which knows nothing of messages.
//!
//! # Examples
//!
//! ```
//! use tokio::{io::{AsyncReadExt, AsyncWriteExt}, net::TcpStream};
//! use tp_fault::{ExecutionCounter, Plan, Proxy};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The answer breaks off after its ninth byte. The request is executed all the same.
//! let counter = ExecutionCounter::start().await?;
//! let proxy = Proxy::start(counter.address(), Plan::new(["cut:response=9".parse()?])).await?;
//!
//! let mut client = TcpStream::connect(proxy.address()).await?;
//! client.write_all(b"POST /?id=pay-7 HTTP/1.1\r\ncontent-length: 0\r\n\r\n").await?;
//! let mut answer = String::new();
//! client.read_to_string(&mut answer).await?;
//! assert_eq!(answer, "HTTP/1.1 ");
//! assert_eq!(counter.executions("pay-7"), 1);
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
