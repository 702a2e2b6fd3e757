use std::{fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use raw_json::RawJson;

use crate::ErrorKind;

/// Marks a reply that came from a fallback step rather than from the tool.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Degraded {
    /// Kind of the step that returned the reply.
    pub step: DegradedStep,
    /// Source of the reply: the fallback's name, `cache` or `configuration`.
    pub source: Arc<str>,
    /// Age of the reply.
    pub age: Duration,
    /// Failed steps, in the order in which they were tried.
    pub errors: Vec<FailedStep>,
    /// Metadata that the layers of a fallback attached to its reply.
    pub said: Vec<(&'static str, RawJson)>,
}

/// Kind of a fallback step, as named in records and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DegradedStep {
    /// Another tool replied.
    Fallback,
    /// A stale result was returned.
    Stale,
    /// The configured default was returned.
    Default,
}

/// A tool that was tried and failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedStep {
    /// Name of the tool; `None` if the caller may not know of it. `configuration` for a default that does not match
    /// the output schema of the tool.
    pub tool: Option<Arc<str>>,
    /// Kind of the failure.
    pub kind: ErrorKind,
}

impl DegradedStep {
    /// All kinds of steps.
    pub const ALL: &'static [Self] = &[Self::Fallback, Self::Stale, Self::Default];

    /// Returns the name of the step.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fallback => "fallback",
            Self::Stale => "stale",
            Self::Default => "default",
        }
    }
}

impl fmt::Display for DegradedStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Degraded {
    /// Key under which a reply's `_meta` holds the record.
    pub const META_KEY: &'static str = "dev.toolplane/degraded";

    /// Creates the mark of a reply of this step from this source.
    #[must_use]
    pub fn new(step: DegradedStep, source: impl Into<Arc<str>>) -> Self {
        Self {
            step,
            source: source.into(),
            age: Duration::ZERO,
            errors: Vec::new(),
            said: Vec::new(),
        }
    }

    /// Returns the record for a reply, as one object: `degraded`, `step`, `source`, `age_ms`, `errors` and, if the
    /// layers of a fallback attached metadata to its reply, `meta`.
    #[must_use]
    pub fn record(&self) -> RawJson {
        let errors: Vec<RawJson> = self.errors.iter().map(FailedStep::record).collect();
        let age = u64::try_from(self.age.as_millis()).unwrap_or(u64::MAX);
        let mut record = vec![
            ("degraded", RawJson::from(true)),
            ("step", RawJson::from(self.step.as_str())),
            ("source", RawJson::from(&*self.source)),
            ("age_ms", RawJson::from(age)),
            ("errors", RawJson::from_items(&errors)),
        ];
        if !self.said.is_empty() {
            let said: Vec<(&str, RawJson)> = self
                .said
                .iter()
                .map(|(key, value)| (*key, value.clone()))
                .collect();
            record.push(("meta", RawJson::from_members(&said)));
        }
        RawJson::from_members(&record)
    }
}

impl FailedStep {
    /// Creates the failure of a step; `tool` is `None` if its name is not told.
    #[must_use]
    pub fn new(tool: Option<Arc<str>>, kind: ErrorKind) -> Self {
        Self { tool, kind }
    }

    fn record(&self) -> RawJson {
        let error = ("error", RawJson::from(self.kind.as_str()));
        match &self.tool {
            Some(tool) => RawJson::from_members(&[("tool", RawJson::from(&**tool)), error]),
            None => RawJson::from_members(&[error]),
        }
    }
}

impl fmt::Display for FailedStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.tool {
            Some(tool) => write!(f, "`{tool}` failed as `{}`", self.kind),
            None => write!(f, "another failed as `{}`", self.kind),
        }
    }
}

/// Tools that were tried for one call, shared by all steps of the call. None is tried twice, so that tools which are
/// fallbacks of each other do not loop.
#[derive(Debug, Clone)]
pub struct FallbackOf(Arc<Tried>);

#[derive(Debug)]
struct Tried {
    first: Arc<str>,
    wants_effect: bool,
    others: Mutex<Vec<Arc<str>>>,
}

impl FallbackOf {
    /// Starts the record of a call of this tool. `wants_effect` is `true` for a call with an idempotency key, which
    /// is made for its effect only.
    #[must_use]
    pub fn new(tool: Arc<str>, wants_effect: bool) -> Self {
        Self(Arc::new(Tried {
            first: tool,
            wants_effect,
            others: Mutex::default(),
        }))
    }

    /// Returns the tool that was called first.
    #[must_use]
    pub fn first(&self) -> &Arc<str> {
        &self.0.first
    }

    /// Returns `true` if the call is made for an effect. Only a reply that was produced for this call is then
    /// acceptable.
    #[must_use]
    pub fn wants_effect(&self) -> bool {
        self.0.wants_effect
    }

    /// Records that this tool is tried. Returns `false` if it was tried before.
    #[must_use]
    pub fn adds(&self, tool: &Arc<str>) -> bool {
        let mut others = self.0.others.lock();
        let is_new = *tool != self.0.first && !others.contains(tool);
        if is_new {
            others.push(tool.clone());
        }
        is_new
    }
}
