//! The gateway in front of real servers and of hostile ones, as its clients see it.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says why"
)]

mod bridge;
mod browser;
mod dynamic;
mod example;
mod faults;
mod hostile;
mod inspector;
mod news;
mod relay;
mod serving;
mod support;
mod tasks;
mod telemetry;
mod training;
mod websocket;
