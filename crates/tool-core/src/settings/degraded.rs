use std::{fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use raw_json::RawJson;
use serde_json::{Map, Value, json};

use crate::ErrorKind;

/// Marks a reply that came from a fallback step rather than from the tool.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Degraded {
    /// Kind of the step.
    pub step: DegradedStep,
    /// Origin of the reply: the fallback's name, `cache` or `configuration`.
    pub source: Arc<str>,
    /// Age of the reply.
    pub age: Duration,
    /// Failures before it, in the order in which they happened.
    pub errors: Vec<FailedStep>,
    /// `_meta` that the layers of a fallback added to its reply.
    pub said: Vec<(&'static str, RawJson)>,
}

/// Kind of a fallback step, as named in records and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DegradedStep {
    /// The value of the configuration was given.
    Fallback,
    /// A stale result was returned.
    Stale,
    /// The value of the configuration was given.
    Default,
}

/// A tool that was tried and failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedStep {
    /// Name of the tool; `None` if the caller may not know of it. `configuration` for a given answer that does not
    /// fit the output schema of the tool.
    pub tool: Option<Arc<str>>,
    /// Kind of the failure.
    pub kind: ErrorKind,
}

impl DegradedStep {
    /// All kinds of steps.
    pub const ALL: [Self; 3] = [Self::Fallback, Self::Stale, Self::Default];

    /// Returns the word for it.
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
    /// Key of `_meta` under which a reply is marked.
    pub const META_KEY: &'static str = "dev.toolplane/degraded";

    /// A reply of this step, from this origin.
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

    /// Returns the mark as one object: `degraded`, `step`, `source`, `age_ms`, `errors` and, if the layers of a
    /// fallback added some, `meta`.
    #[must_use]
    pub fn record(&self) -> RawJson {
        let errors: Vec<Value> = self.errors.iter().map(FailedStep::record).collect();
        let age = u64::try_from(self.age.as_millis()).unwrap_or(u64::MAX);
        let mut record = json!({
            "degraded": true,
            "step": self.step.as_str(),
            "source": &*self.source,
            "age_ms": age,
            "errors": errors,
        });
        if let (false, Value::Object(record)) = (self.said.is_empty(), &mut record) {
            let said = self.said.iter();
            let said: Map<_, _> = said
                .map(|(key, value)| ((*key).to_owned(), value.to().unwrap_or_default()))
                .collect();
            record.insert("meta".to_owned(), Value::Object(said));
        }
        RawJson::from(record)
    }
}

impl FailedStep {
    fn record(&self) -> Value {
        match &self.tool {
            Some(tool) => json!({"tool": &**tool, "error": self.kind.as_str()}),
            None => json!({"error": self.kind.as_str()}),
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

/// The tools that were tried for one call, shared by all work for it: none is tried twice, so that tools that fall
/// back to each other come to an end.
#[derive(Debug, Clone)]
pub struct FallbackOf(Arc<Tried>);

#[derive(Debug)]
struct Tried {
    first: Arc<str>,
    wants_effect: bool,
    others: Mutex<Vec<Arc<str>>>,
}

impl FallbackOf {
    /// A call of this tool. It is made for its effect alone if it has an idempotency key.
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

    /// Returns `true` if the call is made for an effect: only an answer that was given for it counts.
    #[must_use]
    pub fn wants_effect(&self) -> bool {
        self.0.wants_effect
    }

    /// Records that this tool is tried. Returns `false` if it was before.
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
