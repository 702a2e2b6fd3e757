//! The gateway between clients and real or hostile servers, from the view of its clients.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says why"
)]

mod agents;
mod book;
mod bridge;
mod browser;
mod dynamic;
mod example;
mod faults;
mod hostile;
mod inspector;
mod news;
mod relay;
mod routes;
mod serving;
mod support;
mod tasks;
mod telemetry;
mod training;
mod websocket;
mod workflows;
