use std::{fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use raw_json::RawJson;
use serde_json::{Map, Value, json};

use crate::ErrorKind;

/// That an answer is not what the call would have come to if its tool worked.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Degraded {
    /// What kind of step gave it.
    pub step: DegradedStep,
    /// Where it is from: the fallback's name, `cache` or `configuration`.
    pub source: Arc<str>,
    /// How old it is.
    pub age: Duration,
    /// What failed before, in the order in which it was tried.
    pub errors: Vec<FailedStep>,
    /// What the layers of a fallback said of its answer.
    pub said: Vec<(&'static str, RawJson)>,
}

/// The kinds of steps, as records and metrics name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DegradedStep {
    /// Another tool answered.
    Fallback,
    /// A kept answer was given.
    Stale,
    /// What the configuration says was given.
    Default,
}

/// A tool that was tried and failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedStep {
    /// Its name; nothing if the caller may not know of it. `configuration` for a given answer that does not fit the output
    /// schema of the tool.
    pub tool: Option<Arc<str>>,
    /// How it failed.
    pub kind: ErrorKind,
}

impl DegradedStep {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Fallback, Self::Stale, Self::Default];

    /// The word for it.
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
    /// Where a reply says it.
    pub const META_KEY: &'static str = "dev.toolplane/degraded";

    /// An answer of this step, from there.
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

    /// What a reply says, as one object: `degraded`, `step`, `source`, `age_ms`, `errors` and, where the layers of a
    /// fallback said something of its answer, that as `meta`.
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

/// The tools that were tried for one call, by all that is done for it: none is tried twice, so that tools which stand
/// in for each other come to an end.
#[derive(Debug, Clone)]
pub struct FallbackOf(Arc<Tried>);

#[derive(Debug)]
struct Tried {
    first: Arc<str>,
    wants_effect: bool,
    others: Mutex<Vec<Arc<str>>>,
}

impl FallbackOf {
    /// A call of this tool, which is for its effect and nothing else if it has an idempotency key.
    #[must_use]
    pub fn new(tool: Arc<str>, wants_effect: bool) -> Self {
        Self(Arc::new(Tried {
            first: tool,
            wants_effect,
            others: Mutex::default(),
        }))
    }

    /// The tool that was called.
    #[must_use]
    pub fn first(&self) -> &Arc<str> {
        &self.0.first
    }

    /// Whether the call is for an effect: then no answer is any good that was not given for it.
    #[must_use]
    pub fn wants_effect(&self) -> bool {
        self.0.wants_effect
    }

    /// Takes note that this tool is tried; false if it was before.
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
