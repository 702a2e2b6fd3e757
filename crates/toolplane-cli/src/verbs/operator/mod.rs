//! Verbs that ask running gateways.

pub(crate) mod approvals;
pub(crate) mod health;
pub(crate) mod ledger;
pub(crate) mod tokens;
