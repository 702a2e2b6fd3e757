//! Everything else of a configuration: defaults, policy, gateway, health.

pub(crate) mod authoring;
pub(crate) mod call_timeout;
pub(crate) mod configuration;
pub(crate) mod defaults;
pub(crate) mod gateway;
pub(crate) mod health;
pub(crate) mod listen;
pub(crate) mod origins;
pub(crate) mod policy;
pub(crate) mod principals;
pub(crate) mod search;
pub(crate) mod store;
