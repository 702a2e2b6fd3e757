//! Meta-tools, by which clients find the tools that are not listed.

mod arguments;
mod execute;
mod meta_tools;
mod offer;

pub(crate) use self::{arguments::IndirectTarget, execute::Redirection, offer::Offer};
