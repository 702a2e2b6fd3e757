use std::time::Duration;

use crate::ConcurrencySettings;

/// What is known of a tool beyond how to call it: what routing, limits and policies go by.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Metadata {
    /// What it can do, such as `search`: agents and routes ask for these.
    pub capabilities: Vec<String>,
    /// Free labels, such as `production-ready`.
    pub tags: Vec<String>,
    /// How fast it usually is.
    pub latency: Option<LatencyClass>,
    /// How often it may be called.
    pub rate_limit: Option<RateLimitSettings>,
    /// How many calls of it may run at once.
    pub concurrency: Option<ConcurrencySettings>,
    /// What a call costs, in US dollars.
    pub cost_per_call: Option<f64>,
    /// The share of calls that succeed by agreement, in percent.
    pub sla: Option<f64>,
    /// Whether a failed call may be tried again.
    pub retryable: Option<bool>,
    /// Whether calling it twice has the effect of calling it once.
    pub idempotent: Option<bool>,
    /// Whether it changes nothing.
    pub read_only: Option<bool>,
    /// What a caller must be permitted.
    pub required_permissions: Vec<String>,
    /// How confidential its data are.
    pub data_classification: Option<DataClassification>,
    /// What happens to personal data in its arguments.
    pub pii_handling: Option<PiiHandling>,
    /// Tools to use in its place when it fails, best first.
    pub fallbacks: Vec<String>,
    /// A URL that answers 2xx while it is well.
    pub health_check_endpoint: Option<String>,
}

/// How fast a tool usually is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LatencyClass {
    /// Below 100 ms.
    Fast,
    /// Below 1 s.
    Medium,
    /// 1 s and more.
    Slow,
}

/// How often a tool may be called. It is counted evenly, as a bucket that holds `burst` calls and refills at
/// `requests` in `period`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimitSettings {
    /// How many calls.
    pub requests: u32,
    /// In what time.
    pub period: Duration,
    /// How many at once; as many as `requests` if absent.
    pub burst: Option<u32>,
    /// How many of them may be of one principal; all of them if absent.
    pub per_principal: Option<u32>,
}

/// How confidential a tool's data are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DataClassification {
    /// Anyone may see them.
    Public,
    /// The organisation may see them.
    Internal,
    /// Only those who need them may see them.
    Sensitive,
}

/// What happens to personal data in a tool's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PiiHandling {
    /// They pass as they are.
    None,
    /// They are replaced by something that points to no one.
    Anonymize,
    /// They are encrypted.
    Encrypt,
}
