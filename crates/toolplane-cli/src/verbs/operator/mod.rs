//! Verbs that ask running gateways, or the store of the configuration.

pub(crate) mod approvals;
pub(crate) mod health;
pub(crate) mod ledger;
mod offline;
pub(crate) mod tokens;
