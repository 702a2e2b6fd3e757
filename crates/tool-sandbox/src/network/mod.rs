//! Access of a sandboxed process to the hosts that its command names, through a proxy of this process.

mod addresses;
mod proxy;
mod rules;

pub(crate) use self::proxy::{Proxy, serve};
pub(crate) use self::rules::HostRules;
