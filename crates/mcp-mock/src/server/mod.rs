//! The mock server: its features, the log of received messages, and its answers.

pub(crate) mod catalog;
mod default_answer;
mod features;
pub(crate) mod message_log;
mod mock_server;
mod result_shapes;
pub(crate) mod service;
pub(crate) mod state;
mod too_few_calls;

pub use self::{
    features::{MockPrompt, MockResource, MockTool},
    message_log::ReceivedMessage,
    mock_server::{MockServer, MockServerBuilder},
    too_few_calls::TooFewCalls,
};
