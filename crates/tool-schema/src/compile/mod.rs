//! From the text of a schema to its validators, and the reasons why a schema has none.

mod invalid;
mod options;
mod read;

pub(crate) use self::{
    invalid::invalid,
    options::{fragment, options},
    read::{parse, read},
};
