//! Fallback for systems without `/proc`: only the process group of a child is known.

use std::ffi::OsString;

use rustix::process::{Pid, Signal};

use super::command::inherited_mark;

pub(crate) const MARK_VARIABLE: &str = "MCP_CLIENT_TREE";

#[derive(Debug)]
pub(crate) struct Descendants;

impl Descendants {
    pub(crate) fn new() -> Self {
        Self
    }

    pub(crate) fn mark_value(&self) -> OsString {
        inherited_mark(MARK_VARIABLE).unwrap_or_default()
    }

    pub(crate) fn set_leader(&self, _: Pid) {}

    pub(crate) fn record(&self) {}

    pub(crate) fn signal(&self, _: Signal) {}

    pub(crate) fn finish(&self) {}
}
