//! The command line of toolplane: parses arguments, calls the facade or the gateway and prints the result. Data go to
//! stdout, everything else to stderr, and the exit code tells the kind of the end. It adds no behavior to calls: a
//! program can do all of it with the crate `toolplane`.

mod clients;
mod command;
mod config;
mod error;
mod exit;
mod gateways;
mod lock;
mod outgoing;
mod output;
mod process;
mod run;
mod store;
mod telemetry;
mod verbs;

pub use self::{exit::Exit, run::main};
