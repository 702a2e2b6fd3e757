//! From the text of a schema to its validators, and the reasons why a schema has none.

mod invalid;
mod older_forms;
mod options;
mod read;

pub(crate) use self::{
    invalid::invalid,
    older_forms::upgrade,
    options::{fragment, options},
    read::{parse, read},
};
