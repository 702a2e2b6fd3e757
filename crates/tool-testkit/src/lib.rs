//! Scripted executors, ready-made tools and calls, and where to find test peers.

mod executor;
mod peers;
mod scripted;
mod tools;
mod uris;

pub use self::{
    executor::executor,
    peers::{PeerCommand, Peers, Skip, skip},
    scripted::{ScriptedExecutor, ScriptStep},
    tools::{TestTool, call},
    uris::{FileReader, file_readers, file_spelling},
};
