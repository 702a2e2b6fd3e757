//! Ports through which layers reach what they do not own.

mod approval;
mod authentication;
mod clock;
mod embedder;
mod flows;
mod kept_texts;
mod ledger;
mod tokens;
mod usage;

pub use self::{
    approval::{ApprovalCall, ApprovalListener, ApprovalRecord, ApprovalState, Approvals, ApprovalsError},
    authentication::{Authenticate, AuthenticationError},
    clock::{Clock, Instant, SystemClock},
    embedder::{EmbedError, Embedder},
    flows::{FlowChoice, FlowClaim, FlowPhase, FlowRun, Flows, FlowsError},
    kept_texts::{KeptTexts, KeptTextsError},
    ledger::{CallEnd, Claim, ClaimResult, Ledger, LedgerEntry, LedgerState},
    tokens::{TokenRecord, TokenState, Tokens, TokensError},
    usage::{DailyUsage, DailyUsageError, UsageFigures, UsageKey},
};
