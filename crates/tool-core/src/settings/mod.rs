//! Settings of layers, for one tool.

mod adapt;
mod cache;
mod error_policy;
mod hedge;
mod limits;
mod on_failure;
mod overrides;
mod partial;

pub use self::{
    adapt::{AdaptedArguments, ArgumentHandling, Change, ChangeKind},
    cache::{CacheOutcome, CacheScope, CacheSettings},
    error_policy::{ErrorPolicySettings, ErrorRule},
    hedge::{HedgeAfter, HedgePercent, HedgeSettings},
    limits::{ConcurrencySettings, Limits, Scopes},
    on_failure::{Degraded, DegradedStep, FailedStep, FailureStep, FallbackOf},
    overrides::{
        BreakerScope, BreakerSettings, IdempotencySettings, Overrides, RedactionMode, RetrySettings,
    },
    partial::{PartialRule, PartialSettings},
};
