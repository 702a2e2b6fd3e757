//! Sessions of legacy clients.

mod resumable;
mod sessions;

pub(super) use self::{
    resumable::ResumableStream,
    sessions::{Session, Sessions, random_id},
};
