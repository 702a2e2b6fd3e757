//! Ports through which layers reach what they do not own.

mod approval;
mod clock;
mod ledger;
mod tokens;

pub use self::{
    approval::{ApprovalCall, ApprovalListener, ApprovalRecord, ApprovalState, Approvals, ApprovalsError},
    clock::{Clock, Instant, SystemClock},
    ledger::{CallEnd, Claim, ClaimResult, Ledger, LedgerEntry, LedgerState},
    tokens::{TokenRecord, TokenState, Tokens, TokensError},
};
