//! Runs of code.

mod accesses;
mod command;
mod failure;
mod reply;
mod warm;

pub(crate) use self::{
    accesses::AccessReporter,
    command::{Job, command},
    failure::{Failed, refused},
    reply::reply,
    warm::WarmWorkers,
};
