use std::{sync::LazyLock, time::Duration};

use raw_json::RawJson;

use crate::{ConcurrencySettings, ErrorKind, StaticDefault};

/// Metadata of a tool beyond its interface, for routing, limits and policies.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Metadata {
    /// Capabilities, such as `search`, by which agents and routes find tools.
    pub capabilities: Vec<String>,
    /// Labels, such as `production-ready`.
    pub tags: Vec<String>,
    /// Other names by which a search finds the tool. It is not called by them.
    pub aliases: Vec<String>,
    /// Sentences for which the tool is the answer: a search finds it by their words.
    pub examples: Vec<String>,
    /// Calls with their expected results, which test the tool.
    pub example_calls: Vec<ExampleCall>,
    /// Usual latency.
    pub latency: Option<LatencyClass>,
    /// Rate limit.
    pub rate_limit: Option<RateLimitSettings>,
    /// Limit of concurrent calls.
    pub concurrency: Option<ConcurrencySettings>,
    /// Cost of a call, in US dollars.
    pub cost_per_call: Option<f64>,
    /// Agreed share of successful calls, in percent.
    pub sla: Option<f64>,
    /// `true` if a failed call may be retried.
    pub retryable: Option<bool>,
    /// `true` if calling it twice has the effect of calling it once.
    pub idempotent: Option<bool>,
    /// `true` if it changes nothing.
    pub read_only: Option<bool>,
    /// Permissions that a caller must have.
    pub required_permissions: Vec<String>,
    /// Confidentiality of its data.
    pub data_classification: Option<DataClassification>,
    /// Handling of personal data in its arguments.
    pub pii_handling: Option<PiiHandling>,
    /// Fallback tools, best first.
    pub fallbacks: Vec<String>,
    /// URL that answers 2xx while the tool is healthy.
    pub health_check_endpoint: Option<String>,
}

/// Call of a tool with its expected result.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ExampleCall {
    /// Arguments.
    pub arguments: RawJson,
    /// Expected result.
    pub expected: ExpectedResult,
}

/// Expected result of an [`ExampleCall`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ExpectedResult {
    /// Any result that is no failure.
    Any,
    /// This value.
    Value(RawJson),
    /// A value that this JSON Schema accepts.
    Shape(RawJson),
    /// A failure of this kind.
    Error(ErrorKind),
}

impl ExampleCall {
    /// Creates an example.
    #[must_use]
    pub const fn new(arguments: RawJson, expected: ExpectedResult) -> Self {
        Self { arguments, expected }
    }
}

impl StaticDefault for Metadata {
    fn static_default() -> &'static Self {
        static DEFAULT: LazyLock<Metadata> = LazyLock::new(Metadata::default);
        &DEFAULT
    }
}

/// Usual latency of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LatencyClass {
    /// Below 100 ms.
    Fast,
    /// Below 1 s.
    Medium,
    /// 1 s or more.
    Slow,
}

impl LatencyClass {
    /// Returns the name in settings and listings.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Medium => "medium",
            Self::Slow => "slow",
        }
    }
}

/// Rate limit of a tool: a token bucket that holds `burst` calls and refills at `requests` per `period` (GCRA, ITU-T
/// I.371).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimitSettings {
    /// Number of calls per period.
    pub requests: u32,
    /// Period.
    pub period: Duration,
    /// Size of the bucket; `requests` if absent.
    pub burst: Option<u32>,
    /// Number of calls per period and principal; unlimited if absent.
    pub per_principal: Option<u32>,
}

impl RateLimitSettings {
    /// Creates a limit of `requests` per `period`, for all principals together and with a bucket of that size.
    #[must_use]
    pub const fn new(requests: u32, period: Duration) -> Self {
        Self {
            requests,
            period,
            burst: None,
            per_principal: None,
        }
    }
}

/// Confidentiality of a tool's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DataClassification {
    /// Anyone may see them.
    Public,
    /// The organization may see them.
    Internal,
    /// Only people who need them may see them.
    Sensitive,
}

impl DataClassification {
    /// Returns the name in settings and listings.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Internal => "internal",
            Self::Sensitive => "sensitive",
        }
    }
}

/// Handling of personal data in a tool's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PiiHandling {
    /// Passed unchanged.
    None,
    /// Replaced by values that identify nobody.
    Anonymize,
    /// Encrypted.
    Encrypt,
}

impl PiiHandling {
    /// Returns the name in settings and listings.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Anonymize => "anonymize",
            Self::Encrypt => "encrypt",
        }
    }
}
