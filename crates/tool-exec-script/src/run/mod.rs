//! Runs of code.

mod command;
mod failure;
mod reply;
mod sandboxes;
mod warm;

pub(crate) use self::{
    command::{Job, command},
    failure::{Failed, refused},
    reply::reply,
    sandboxes::Sandboxes,
    warm::WarmWorkers,
};
