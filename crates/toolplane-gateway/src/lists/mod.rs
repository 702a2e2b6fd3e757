//! Answers to `tools/list` and the other lists.

mod first_answers;
mod missing;
mod pages;

pub use self::first_answers::FirstAnswers;
pub(crate) use self::{
    missing::add_missing_servers,
    pages::{ListPages, ListRequest, changed_notifications},
};
