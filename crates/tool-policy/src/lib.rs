//! Policy layers of a governed call: who may call which tool, with what, and how often.
//!
//! - [`ErrorPolicyLayer`] rewords errors for callers and raises alerts.
//! - [`AdmissionLayer`] refuses callers without permission, and blocked tools.
//! - [`ArgumentSizeLayer`] refuses arguments that are too large.
//! - [`ValidationLayer`] checks arguments, and [`ResultValidationLayer`] checks results.
//! - [`QuotaLayer`] limits the calls of a conversation or a turn.
//! - [`ApprovalLayer`] holds calls until a person allows them.
//! - [`CredentialRefreshLayer`] renews credentials that an upstream refused.
//! - [`RateLimitLayer`] limits attempts by time.
//! - [`BreakerLayer`] and [`BreakerPeekLayer`] stop attempts to a backend that keeps failing.
//! - [`RedactionLayer`] hides secrets in what a tool returns.
//! - [`PartialResultsLayer`] marks or refuses incomplete results.
//!
//! Each layer works alone around anything that implements [`tool_core::Invoke`].
//!
//! # Examples
//! ```
//! use tool_core::{Layers, Pattern};
//! use tool_policy::{AdmissionLayer, Rules, ValidationLayer};
//!
//! # fn stack<S>(executor: S) {
//! let rules = Rules { blocklist: vec![Pattern::new("files__delete_*")], ..Rules::default() };
//! let stack = Layers::outermost(AdmissionLayer::new(rules))
//!     .then(ValidationLayer)
//!     .around(executor);
//! # }
//! ```

mod admission;
mod approval;
mod argument_size;
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
        Admission, AdmissionLayer, ApprovalRules, Denial, DisabledByOperator, Rules, SharedRules, ToolChoice,
    },
    approval::{
        Approval, ApprovalDesk, ApprovalLayer, ApprovalRule, ApprovalVerdict, DecideError, MemoryApprovals,
        approval_json, harmless_text, readable_json,
    },
    argument_size::{ArgumentSize, ArgumentSizeLayer, MaxArgumentsBytes},
    breaker::{
        Breaker, BreakerLayer, BreakerPeek, BreakerPeekLayer, BreakerScope, BreakerSettings, Breakers,
        Circuit, CircuitOpen, CircuitOutcome, CircuitPermit,
    },
    credential_refresh::{CredentialRefresh, CredentialRefreshLayer, CredentialSettings},
    error_policy::{ErrorPolicy, ErrorPolicyLayer, ErrorPolicySettings, ErrorRule, text_for_caller},
    partial_results::{PartialResults, PartialResultsLayer, PartialRule, PartialSettings},
    quota::{MicroDollars, Quota, QuotaLayer, QuotaLimits},
    rate_limit::{RateLimit, RateLimitLayer, RateLimits},
    redaction::{Redaction, RedactionLayer, RedactionMode, Redactor},
    validation::{ArgumentSettings, ResultValidation, ResultValidationLayer, Validation, ValidationLayer},
};
