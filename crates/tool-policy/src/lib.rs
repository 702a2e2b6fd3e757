//! The policy layers of a governed call: [`Admit`] decides whether this caller may call this tool, [`Validate`]
//! whether the arguments fit its schema, [`ValidateResult`] whether the answer does; [`RateLimit`] bounds how often tools
//! are called, and [`Breaker`] holds them back after failures. Each works alone around anything that implements
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
mod breaker;
mod circuit;
mod limiter;
mod plain_uri;
mod rate_limit;
mod redact;
mod redactor;
mod rules;
mod shared_rules;
mod validate;

pub use self::{
    admit::{Admit, Admitting},
    breaker::{Breaker, BreakerPeek, Breaking, Peeking},
    circuit::{Circuit, HeldBack, Permit, Verdict},
    rate_limit::{RateLimit, RateLimiting},
    redact::{Redact, Redacting},
    redactor::Redactor,
    rules::{Refusal, Rules},
    shared_rules::SharedRules,
    validate::{Validate, ValidateResult, Validating, ValidatingResult},
};
