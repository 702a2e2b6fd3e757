//! Support of the tests: a client of our own, processes that are always reaped, and a gateway.

mod client;
mod collector;
mod compare;
mod faults;
mod gateway;
mod hostile;
mod http;
mod http_client;
mod offer;
mod peers;
mod process;
mod site;
mod time;

pub(crate) use self::{
    client::{Answer, Client, Era, List, StdioClient, call_params},
    collector::{Collector, attribute},
    compare::{assert_same_definition, assert_same_result, members, text},
    faults::{Net, arrivals, is_cut, plan, tp_fault},
    gateway::{Configuration, Gateway, HttpGateway, binary, end_both, example, mock_arguments, mock_server},
    hostile::{Carrier, Stage, healthy_server, hostile_arguments, hostile_program},
    http::{Response, connect, exchange, receive},
    http_client::{HttpClient, Notifications},
    offer::Offer,
    peers::{everything_at_no_time, installed, listening_peer},
    process::{Process, assert_all_end, base_environment},
    site::Site,
    time::{LIMIT, Stopwatch, eventually},
};
