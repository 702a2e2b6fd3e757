//! Messages about mismatches: the place in the value, the broken rule, and the value that was found.

mod explain;
mod rule;
mod union;
mod words;

pub(crate) use self::{
    explain::{explain, too_complex, unexplained},
    words::cut,
};
