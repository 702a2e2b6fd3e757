//! The sections of all layers.

use std::sync::LazyLock;

use tool_policy::{
    ApprovalLayer, ArgumentSizeLayer, BreakerLayer, CredentialRefreshLayer, ErrorPolicyLayer,
    PartialResultsLayer, RateLimitLayer, RedactionLayer, ValidationLayer,
};
use tool_runtime::{
    CacheLayer, ConcurrencyLimitLayer, FallbackLayer, HedgeLayer, IdempotencyLayer, IntentLayer, RetryLayer,
};
use tool_settings::Sections;

/// Returns the sections of all layers: everything that a layer reads from a configuration, in the order in which the JSON
/// Schema and messages list their keys.
#[must_use]
pub fn sections() -> &'static Sections {
    static SECTIONS: LazyLock<Sections> = LazyLock::new(|| {
        Sections::new(vec![
            RetryLayer::section(),
            HedgeLayer::section(),
            BreakerLayer::section(),
            ValidationLayer::section(),
            ArgumentSizeLayer::section(),
            CacheLayer::section(),
            CredentialRefreshLayer::section(),
            IdempotencyLayer::section(),
            IntentLayer::section(),
            RedactionLayer::section(),
            ApprovalLayer::section(),
            FallbackLayer::section(),
            PartialResultsLayer::section(),
            RateLimitLayer::section(),
            ConcurrencyLimitLayer::section(),
            ErrorPolicyLayer::section(),
        ])
    });
    &SECTIONS
}
