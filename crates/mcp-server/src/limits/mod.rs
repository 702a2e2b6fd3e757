//! Limits that all clients of one endpoint share.

mod byte_budget;
mod stream_permits;

pub(crate) use self::{
    byte_budget::ByteBudget,
    stream_permits::{NoStreamPermit, StreamPermit, StreamPermits},
};
