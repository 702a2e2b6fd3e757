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

mod admission;
mod approval;
mod breaker;
mod credential_refresh;
mod error_policy;
mod partial_results;
mod quota;
mod rate_limit;
mod redaction;
mod sync;
mod validation;

pub use self::{
    admission::{
        Admission, AdmissionLayer, ApprovalRules, Denial, Rules, SharedRules, SwitchedOff, ToolChoice,
    },
    approval::{
        Approval, ApprovalDesk, ApprovalLayer, ApprovalRule, ApprovalVerdict, DecideError, MemoryApprovals,
        approval_json, harmless_text, readable_json,
    },
    breaker::{
        Breaker, BreakerLayer, BreakerPeek, BreakerPeekLayer, BreakerScope, BreakerSettings, Breakers,
        Circuit, HeldBack, Permit, Verdict,
    },
    credential_refresh::{CredentialRefresh, CredentialRefreshLayer, CredentialSettings},
    error_policy::{ErrorPolicy, ErrorPolicyLayer, ErrorPolicySettings, ErrorRule, tellable},
    partial_results::{PartialResults, PartialResultsLayer, PartialRule, PartialSettings},
    quota::{CallLimits, Micros, Quota, QuotaLayer},
    rate_limit::{RateLimit, RateLimitLayer, RateLimits},
    redaction::{Redaction, RedactionLayer, RedactionMode, Redactor},
    validation::{ArgumentSettings, ResultValidation, ResultValidationLayer, Validation, ValidationLayer},
};
