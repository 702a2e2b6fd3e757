//! The engine that runs containers, over its API.

mod connect;
mod create;
mod error;
mod gateways;
mod images;
mod run;
mod runs;
mod sockets;

pub use self::{connect::ContainerEngine, error::EngineError, sockets::EngineSockets};
pub(crate) use self::{
    connect::{Engine, Engines},
    create::create_body,
    gateways::Gateways,
    images::{FoundImage, find_image},
    run::{ContainerExit, Job, RunResult, run},
    runs::Runs,
};
