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
//! A [`TokenAuthenticator`] turns static tokens into callers, whose permissions [`Principals`] gives.
//!
//! Each layer works alone around anything that implements [`tool_core::Invoke`], except for [`BreakerPeekLayer`], which needs a
//! [`BreakerLayer`] in the same stack.
//!
//! # Settings
//! Layers are created for a stack, and most of them take their numbers from the called tool: a layer does nothing for a tool
//! whose `Settings` do not contain its setting. The documentation of each layer begins with the one that it needs, and
//! [`ToolBuilder::setting`](tool_core::ToolBuilder::setting) sets it.
//!
//! # Time
//! Layers remember times between calls, so all calls of a stack must use one clock: `SystemClock`, of which all instances agree,
//! or clones of one `tool_runtime::TokioClock`.
//!
//! # Examples
//! A closure behind a rate limit, a breaker, retries and time limits:
//! ```
//! use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
//!
//! use tool_core::{
//!     Arguments, CallContext, ErrorKind, Invoke, Layers, RawJson, TargetBackend, Tool, ToolError, invoke_fn,
//! };
//! use tool_policy::{BreakerLayer, Breakers, RateLimitLayer, RateLimits};
//! use tool_runtime::{DeadlineLayer, RetryLayer, RetrySettings, TimeoutLayer};
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), ToolError> {
//!     let n_calls = AtomicU32::new(0);
//!     let tool = Tool::builder("flaky")
//!         .idempotent(true)
//!         .setting(RetrySettings::default())
//!         .setting(RateLimits::per_second(10))
//!         .setting(Breakers::default())
//!         .run(invoke_fn(move |_| match n_calls.fetch_add(1, Relaxed) {
//!             0 => std::future::ready(Err(ToolError::new(ErrorKind::Unavailable, "busy"))),
//!             _ => std::future::ready(Ok(RawJson::from("done"))),
//!         }));
//!     let stack = Layers::outermost(DeadlineLayer)
//!         .then(RetryLayer::default())
//!         .then(RateLimitLayer::new())
//!         .then(BreakerLayer::default())
//!         .then(TimeoutLayer)
//!         .around(TargetBackend);
//!     let mut cx = CallContext::local(&tool, Arguments::none());
//!     cx.record_decisions();
//!     println!("{}", stack.invoke(&mut cx).await?.into_reply()?.text());
//!     println!("{:#?}", cx.decisions());
//!     Ok(())
//! }
//! ```

mod admission;
mod approval;
mod argument_size;
mod authentication;
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
    authentication::{
        MemoryTokens, NewToken, ParseTokenError, PrincipalSettings, Principals, SharedPrincipals,
        TenantMismatch, TokenAuthenticator, TokenText,
    },
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

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
