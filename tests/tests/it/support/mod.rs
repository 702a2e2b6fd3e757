//! What the tests are made with: a client of our own, processes that never stay behind, and a gateway to talk to.

mod client;
mod compare;
mod gateway;
mod hostile;
mod http;
mod peers;
mod process;
mod site;
mod time;

pub(crate) use self::{
    client::{Answer, Client, Era, StdioClient},
    compare::{assert_same_result, assert_same_tool, members, text},
    gateway::{Configuration, Gateway, HttpGateway, binary},
    hostile::{Carrier, Stage, healthy_server},
    http::{HttpClient, Response, connect, exchange, receive},
    peers::{installed, listening_peer},
    process::{Process, assert_all_end, base_environment},
    site::Site,
    time::{LIMIT, Stopwatch, eventually},
};
