//! Runs of code.

mod accesses;
mod command;
mod failure;
mod lines;
mod reply;
mod warm;

pub(crate) use self::{
    accesses::AccessReporter,
    command::{Job, command},
    failure::{Failed, refused},
    lines::LineReporter,
    reply::reply,
    warm::WarmWorkers,
};
