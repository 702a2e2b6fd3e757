//! Entries of a server's lists: their policy, their warnings, and their conversion into descriptors.

mod argument_list;
mod definition_policy;
mod definition_warnings;
mod describe;
mod list_entry;

pub(crate) use self::{
    definition_policy::instructions_for_models,
    describe::{describe, replace_lists},
    list_entry::EntryKey,
};
pub(super) use self::{
    definition_warnings::is_incomplete,
    describe::DescribedList,
    list_entry::{descriptors, entry_keys},
};
