//! Scripted executors, clocks and fixtures for tests.

mod peers;

pub use peers::{PeerCommand, Peers, Skip, skip};
