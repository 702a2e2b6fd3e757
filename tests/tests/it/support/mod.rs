//! What the tests are made with: a client of our own, processes that never stay behind, and a gateway to talk to.

mod client;
mod compare;
mod gateway;
mod http;
mod process;
mod time;

pub(crate) use self::{
    client::{Answer, Client, StdioClient},
    compare::{assert_same_result, assert_same_tool, members, text},
    gateway::{Configuration, Gateway, HttpGateway, binary},
    process::{Process, base_environment},
    time::{Stopwatch, eventually},
};
