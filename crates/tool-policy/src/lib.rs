//! The policy layers of a governed call: [`Admit`] decides whether this caller may call this tool, [`Validate`]
//! whether the arguments fit its schema, [`ValidateResult`] whether the answer does; [`Approve`] has somebody decide on
//! calls that need it; [`RateLimit`] bounds how often tools are called, [`Breaker`] holds them back after failures, and
//! [`Credentials`] gets others when an upstream refuses a tool's; [`Partial`] says what becomes of answers in part; [`Surface`] puts errors into the words that callers get.
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

pub use self::words::tellable;
pub use self::{
    admit::{Admit, Admitting},
    allowance::{Allowance, Allowing, CallLimits, Micros},
    approval_desk::{ApprovalDesk, ApprovalVerdict, DecideError},
    approval_text::{approval_json, harmless_text, readable_json},
    approve::{Approve, Approving},
    breaker::{Breaker, BreakerPeek, Breaking, Peeking},
    circuit::{Circuit, HeldBack, Permit, Verdict},
    credentials::{Credentials, Renewing},
    memory_approvals::MemoryApprovals,
    partial::{Partial, Parting},
    rate_limit::{RateLimit, RateLimiting},
    redact::{Redact, Redacting},
    redactor::Redactor,
    rules::{ApprovalRules, Refusal, Rules, SwitchedOff, ToolChoice},
    shared_rules::SharedRules,
    surface::{Surface, Surfacing},
    validate::{Validate, ValidateResult, Validating, ValidatingResult},
};
