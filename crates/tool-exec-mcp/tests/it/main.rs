//! Servers as sources of tools, and calls of what they offer.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod calls;
mod client;
mod client_lists;
mod client_subscriptions;
mod connections;
mod definitions;
mod fixture;
mod followed_tasks;
mod http;
mod http_server_requests;
mod idle_timeout;
mod lifecycle;
mod logs;
mod modern;
mod names;
mod prompts_and_resources;
mod sandbox;
mod server_requests;
mod shared_subscriptions;
mod states;
mod targets;
mod tasks;
mod wait_queue;
