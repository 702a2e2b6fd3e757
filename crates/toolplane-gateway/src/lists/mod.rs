//! Answers to `tools/list` and the other lists.

mod missing;
mod pages;

pub(crate) use self::{
    missing::add_missing_servers,
    pages::{ListPages, ListRequest, changed_notifications},
};
