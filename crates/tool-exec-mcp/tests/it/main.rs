//! Servers as sources of tools, and calls of what they offer.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod asking;
mod beside_tools;
mod calls;
mod client;
mod connections;
mod definitions;
mod fixture;
mod http;
mod http_asking;
mod idle;
mod lifecycle;
mod logs;
mod modern;
mod names;
mod news;
mod own_lists;
mod own_news;
mod states;
mod tasks;
mod tasks_followed;
mod waiting;
