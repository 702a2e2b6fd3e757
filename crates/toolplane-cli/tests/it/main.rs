//! The binary from the view of its users: its output and its exit codes.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod approvals;
mod bad_input;
mod binary;
mod call;
mod code;
mod endpoint;
mod exits;
mod first_calls;
mod flow;
mod hanging;
mod health;
mod help;
mod hostile_text;
mod import;
mod instructions;
mod lists;
mod lock;
mod memory;
mod mock_server;
mod operator;
mod reload;
mod sandbox;
mod search;
mod serve;
mod signals;
mod sockets;
mod stores;
mod tokens;
mod versions;
mod websocket;
mod wire_names;
