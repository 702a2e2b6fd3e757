//! Scripted executors, ready-made tools and calls, and where to find test peers.

mod executor;
mod file_uris;
mod peers;
mod scripted_executor;
mod test_tool;

pub use self::{
    executor::executor,
    file_uris::{FileReader, file_readers, file_spelling},
    peers::{PeerCommand, Peers, Skip, skip},
    scripted_executor::{ScriptStep, ScriptedExecutor},
    test_tool::{TestTool, call},
};
