use std::{sync::Arc, time::Duration};

use crate::{ApprovalRule, ArgumentHandling, CacheSettings, FailureStep, HedgeSettings, PartialSettings};

/// What the operator set for one tool, for all tools of one server, or by default. Of a tool that a server describes,
/// these are not looked at: what a server says sets nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Overrides {
    /// How long its calls may take in all.
    pub call_timeout: Option<Duration>,
    /// When its failed calls are tried again.
    pub retry: Option<RetrySettings>,
    /// When its slow attempts get company. Of a tool alone: whether it may run twice is not for a server or by default.
    pub hedge: Option<HedgeSettings>,
    /// When it is held back after failures.
    pub breaker: Option<BreakerSettings>,
    /// What is done with arguments that do not fit.
    pub arguments: Option<ArgumentHandling>,
    /// `true` if absent arguments get the default of the tool's schema; decided by `arguments` if it is not given.
    pub fill_defaults: Option<bool>,
    /// When its answers are kept and shared. Of a server or by default, that is for those tools only which their operator
    /// declared read-only and idempotent.
    pub cache: Option<CacheSettings>,
    /// How long is remembered what came of its calls with an idempotency key.
    pub key_ttl: Option<Duration>,
    /// What is hidden in what the tool gives back.
    pub redaction: Option<RedactionMode>,
    /// The names of the fields that are hidden in it, and in its arguments where they are logged.
    pub redact: Option<Arc<[String]>>,
    /// Whether its calls need approval.
    pub approval: Option<ApprovalRule>,
    /// How long it is switched off when its credentials are refused; not at all if zero.
    pub disabled_for: Option<Duration>,
    /// What is done when its calls fail; nothing if empty.
    pub on_failure: Option<Arc<[FailureStep]>>,
    /// What is done with answers in part.
    pub partial: Option<PartialSettings>,
}

/// What becomes of a tool's calls with an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdempotencySettings {
    /// How long is remembered what came of them.
    pub ttl: Duration,
    /// Whether the operator has said how the key is passed on to what runs the tool, which then makes repeating safe.
    pub passes_key: bool,
}

impl Default for IdempotencySettings {
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(24 * 60 * 60),
            passes_key: false,
        }
    }
}

/// What is hidden in what a tool gives back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RedactionMode {
    /// Nothing in results. Errors, which go to logs, alerts and traces, are without the operator's own secrets all the same.
    Off,
    /// The values of the operator's own secrets, wherever they come back.
    #[default]
    Secrets,
    /// Those, and whatever has the form of a well-known kind of credential, whoever it belongs to.
    Credentials,
}

/// When failed calls are tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetrySettings {
    /// How many attempts a call has in all; with 1 there is no retry.
    pub max_attempts: u32,
    /// The longest pause before the second attempt. It doubles with every further one.
    pub initial_delay: Duration,
    /// What no pause is longer than, unless the upstream asks for more.
    pub max_delay: Duration,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            initial_delay: Duration::from_millis(200),
            max_delay: Duration::from_secs(20),
        }
    }
}

/// When a tool is held back after failures: its circuit breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerSettings {
    /// Whether there is none after all.
    pub disabled: bool,
    /// What is held back by failures after a connection was made.
    pub per: BreakerScope,
    /// How many failures in a row open it.
    pub max_failures: u32,
    /// The share of failed calls in the window, in percent, that opens it.
    pub failure_percent: u8,
    /// How many calls there must be in the window for the share to count.
    pub min_calls: u32,
    /// How far back calls count.
    pub window: Duration,
    /// How long it stays open at first. It doubles with every probe that fails.
    pub pause: Duration,
    /// What the pause does not grow beyond.
    pub max_pause: Duration,
}

/// What a circuit breaker holds back after failures. A connection that cannot be made always counts for the upstream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BreakerScope {
    /// The tool alone.
    #[default]
    Tool,
    /// The tool, and all tools of its upstream where the upstream itself fails.
    Upstream,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self {
            disabled: false,
            per: BreakerScope::Tool,
            max_failures: 5,
            failure_percent: 50,
            min_calls: 10,
            window: Duration::from_secs(30),
            pause: Duration::from_secs(1),
            max_pause: Duration::from_secs(60),
        }
    }
}
