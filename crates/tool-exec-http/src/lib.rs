//! HTTP APIs as tools.
//!
//! [`HttpExecutor`] is the [`Executor`](tool_core::Executor) of kind `http`: it builds a request from the arguments of a call
//! and a result from the response. Arguments are percent-encoded or JSON-encoded for their place in the request. Responses
//! are relayed with the bytes that the upstream sent. Only public addresses are connected to, which prevents server-side
//! request forgery (SSRF).
//!
//! # Examples
//! ```
//! use tool_exec_http::{HttpExecutor, serde_json::json};
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! #   let address = server()?;
//!     let weather = HttpExecutor::default().tool(
//!         "weather",
//!         json!({
//!             "url": format!("http://{address}/v1/weather/{{city}}"),
//!             "query": {"days": "{days}"},
//!             "response_path": "$.forecast[*].temperature",
//!             "allow_private": true, // the server of this example is on this machine
//!         }),
//!     )?;
//!     let reply = weather.call(&json!({"city": "Bad Homburg/v. d. Höhe", "days": 2})).await?;
//!     assert_eq!(reply.text(), "[21.50,19]");
//!     Ok(())
//! }
//! # /// Answers one request.
//! # fn server() -> std::io::Result<std::net::SocketAddr> {
//! #     use std::io::{Read, Write};
//! #     let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
//! #     let address = listener.local_addr()?;
//! #     std::thread::spawn(move || -> std::io::Result<()> {
//! #         let (mut stream, _) = listener.accept()?;
//! #         let mut buffer = [0; 4096];
//! #         let length = stream.read(&mut buffer)?;
//! #         let head = String::from_utf8_lossy(&buffer[..length]).into_owned();
//! #         assert!(head.starts_with("GET /v1/weather/Bad%20Homburg%2Fv.%20d.%20H%C3%B6he?days=2 HTTP/1.1"), "{head}");
//! #         let body = r#"{"forecast": [{"temperature": 21.50}, {"temperature": 19}]}"#;
//! #         let length = body.len();
//! #         write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
//! #     });
//! #     Ok(address)
//! # }
//! ```
//!
//! # Settings of a tool
//! Only `url` is required. [`Executor::config_schema`](tool_core::Executor::config_schema) has all settings, and so has the
//! reference of the configuration in the book.
//!
//! - In `url`, `query`, `headers` and `body`, `{argument}` is replaced by an argument of the call, encoded for its place. A
//!   parameter, header or member of the body is omitted if its argument is absent.
//! - `method` is `GET`, or `POST` if there is a body.
//! - **Arguments that no placeholder uses are sent as well.** A `GET`, or another request without a body, adds them to its
//!   query, unless the settings contain `query` or `request`: `request: {}` sends only the arguments that the URL and the
//!   headers name. A `POST`, `PUT` or `PATCH` sends them as its body, unless the settings contain `body`;
//!   `request: {exclude: [..]}` leaves out single arguments.
//! - Parameters of `query` are sent in their order if `serde_json` has its feature `preserve_order` in the program, and otherwise
//!   in the order of their names.
//! - `response_path` is a JSONPath (RFC 9535) to the part of the response that is the result.
//! - `stream` reports the answer while it arrives, and `async` follows work that goes on after it: see [`Operations`].
//! - `${NAME}` and `${secret:name}` are values that [`Secrets`](tool_core::Secrets) supplies.
//! - `allow_private: true` permits loopback and private networks for this tool, and
//!   [`HttpExecutorOptions::allow_private_networks`] single networks and hosts for all tools.
//!
//! # Layers
//! The executor never retries and limits nothing but sizes and time. [`HttpTool::tool`] is a tool for the layers of
//! `tool-runtime` and `tool-policy`.

mod call;
mod client;
mod compile;
mod executor;
mod mapping;
mod operation;
mod options;
mod redaction;
mod request;
mod response;
mod template;
mod tool;

pub use tool_core::serde_json;

pub use self::{
    client::{Network, NetworkError, Resolve, SystemResolver, Traffic},
    executor::HttpExecutor,
    operation::{CallbackError, Operations},
    options::HttpExecutorOptions,
    tool::{HttpTool, InvalidHttpTool},
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
