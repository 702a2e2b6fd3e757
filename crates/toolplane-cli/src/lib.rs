//! The command line of toolplane: reads what the user wants, asks the facade or the gateway for it and shows what
//! came of it. Data go to stdout, everything else to stderr, and the exit code says what kind of end it was. It adds
//! no behaviour to calls: whatever it can do, a program can do with the crate `toolplane`.

mod command;
mod config;
mod error;
mod exit;
mod gateways;
mod output;
mod process;
mod run;
mod telemetry;
mod verbs;

pub use self::{exit::Exit, run::main};
