//! The policy layers of a governed call: [`AdmissionLayer`] decides whether this caller may call this tool, [`ValidationLayer`]
//! whether the arguments fit its schema, [`ResultValidationLayer`] whether the answer does; [`ApprovalLayer`] has somebody decide on
//! calls that need it; [`RateLimitLayer`] bounds how often tools are called, [`BreakerLayer`] holds them back after failures, and
//! [`CredentialRefreshLayer`] gets others when an upstream refuses a tool's; [`PartialResultsLayer`] says what becomes of answers in part; [`ErrorPolicyLayer`] puts errors into the words that callers get.
//! Each works alone around anything that implements
//! [`tool_core::Invoke`].
//!
//! ```
//! use std::sync::Arc;
//! use tool_core::{Layer, Pattern};
//! use tool_policy::{Admit, Rules, Validate};
//!
//! # fn stack<S>(executor: S) {
//! let rules = Rules { blocklist: vec![Pattern::new("files__delete_*")], ..Rules::default() };
//! let stack = Admit::new(Arc::new(rules)).layer(Validate.layer(executor));
//! # }
//! ```

mod admit;
mod allowance;
mod approval_call;
mod approval_desk;
mod approval_text;
mod approve;
mod breaker;
mod circuit;
mod credentials;
mod ledger;
mod limiter;
mod memory_approvals;
mod partial;
mod rate_limit;
mod redact;
mod redactor;
mod rules;
mod shared_rules;
mod surface;
mod sync;
mod validate;
mod words;
mod written;

pub use self::words::text_for_caller;
pub use self::{
    admit::{Admission, AdmissionLayer},
    allowance::{QuotaLimits, MicroDollars, Quota, QuotaLayer},
    approval_desk::{ApprovalDesk, ApprovalVerdict, DecideError},
    approval_text::{approval_json, harmless_text, readable_json},
    approve::{Approval, ApprovalLayer},
    breaker::{Breaker, BreakerLayer, BreakerPeek, BreakerPeekLayer},
    circuit::{Circuit, HeldBack, Permit, Verdict},
    credentials::{CredentialRefresh, CredentialRefreshLayer},
    memory_approvals::MemoryApprovals,
    partial::{PartialResults, PartialResultsLayer},
    rate_limit::{RateLimit, RateLimitLayer},
    redact::{Redaction, RedactionLayer},
    redactor::Redactor,
    rules::{ApprovalRules, Denial, Rules, SwitchedOff, ToolChoice},
    shared_rules::SharedRules,
    surface::{ErrorPolicy, ErrorPolicyLayer},
    validate::{ResultValidation, ResultValidationLayer, Validation, ValidationLayer},
};
