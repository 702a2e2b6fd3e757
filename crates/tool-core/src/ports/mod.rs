//! Ports through which layers reach what they do not own.

mod approval;
mod clock;
mod ledger;

pub use self::{
    approval::{ApprovalCall, ApprovalNews, ApprovalRecord, ApprovalState, Approvals, ApprovalsError},
    clock::{Clock, Instant},
    ledger::{Claim, Claimed, Ledger, LedgerEntry, LedgerState, Settled},
};
