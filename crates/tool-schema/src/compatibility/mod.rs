//! Compatibility of two versions of a schema.

mod bump;
mod proof;
mod reasons;
mod samples;

use raw_json::{RawJson, canonical};

pub use self::bump::{ToolSchemas, VersionBump, required_bump};
use self::{
    proof::{Proof, prove},
    reasons::reasons,
    samples::counterexample,
};
use crate::Schema;

/// Compatibility of a new version of a schema with an old one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compatibility {
    /// Proven: nothing that fits the old version is lost.
    Compatible,
    /// Disproven, for these reasons; there is at least one.
    Breaking(Vec<SchemaBreak>),
    /// Neither proven nor disproven, for this reason: a lower-case fragment.
    Unproven(String),
}

/// Difference by which a new version of a schema breaks an old one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SchemaBreak {
    /// Place in the schema, as a JSON Pointer (RFC 6901).
    pub path: String,
    /// Difference: a lower-case fragment, such as ``requires `city` ``.
    pub message: String,
}

impl SchemaBreak {
    fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
        }
    }
}

impl std::fmt::Display for SchemaBreak {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.path.is_empty() {
            true => f.write_str(&self.message),
            false => write!(f, "`{}` {}", self.path, self.message),
        }
    }
}

impl Compatibility {
    /// Returns `true` if compatibility is proven.
    #[must_use]
    pub fn is_compatible(&self) -> bool {
        matches!(self, Self::Compatible)
    }
}

/// Side on which a schema stands, which decides the direction of a comparison and its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// Arguments: a new version accepts all that the old one does.
    Input,
    /// Results: a new version returns nothing that the old one excludes.
    Output,
}

/// Compares two versions of an input schema: the new one is compatible if it accepts everything that the old one accepts.
///
/// The proof is that of `jsonschema` (containment of canonical forms). If it finds neither a proof nor a disproof, values made
/// from the old schema are tried as counterexamples.
///
/// # Time
/// Schemas that exceed [`Schema::compile`]'s budgets, or smaller ones of this comparison, are not compared. A comparison that
/// takes longer than a second is given up. Both end as [`Compatibility::Unproven`].
///
/// # Examples
/// ```
/// use tool_schema::{Compatibility, RawJson, compatibility};
///
/// let schema = |text: &'static str| RawJson::parse(text);
/// let old = schema(r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}"#)?;
/// let new = schema(r#"{"type":"object","properties":{"city":{"type":["string","null"]}}}"#)?;
/// assert_eq!(compatibility(&old, &new), Compatibility::Compatible);
///
/// let Compatibility::Breaking(reasons) = compatibility(&new, &old) else { panic!() };
/// assert_eq!(reasons[0].to_string(), "requires `city`");
/// # Ok::<(), tool_schema::JsonError>(())
/// ```
#[must_use]
pub fn compatibility(old: &RawJson, new: &RawJson) -> Compatibility {
    compare(old, new, Side::Input)
}

/// Compares two versions of an output schema: the new one is compatible if the old one accepts everything that the new one
/// accepts. A tool without an output schema may return anything.
///
/// # Time
/// As for [`compatibility`].
#[must_use]
pub fn output_compatibility(old: Option<&RawJson>, new: Option<&RawJson>) -> Compatibility {
    match (old, new) {
        (None, _) => Compatibility::Compatible,
        (Some(_), None) => {
            Compatibility::Breaking(vec![SchemaBreak::new("", "has no output schema any more")])
        }
        (Some(old), Some(new)) => compare(old, new, Side::Output),
    }
}

fn compare(old: &RawJson, new: &RawJson, side: Side) -> Compatibility {
    if old.as_str() == new.as_str() || canonical(old) == canonical(new) {
        return Compatibility::Compatible;
    }
    let schemas = (Schema::compile(old), Schema::compile(new));
    let (old, new) = match schemas {
        (Ok(old), Ok(new)) => (old, new),
        (Err(error), _) => return Compatibility::Unproven(format!("the old schema is not usable: {error}")),
        (_, Err(error)) => return Compatibility::Unproven(format!("the new schema is not usable: {error}")),
    };
    // The wider schema must accept everything that the narrower one accepts.
    let (wider, narrower) = match side {
        Side::Input => (&new, &old),
        Side::Output => (&old, &new),
    };
    let found = || reasons(wider.value(), narrower.value(), side);
    let example = || counterexample(wider, narrower).map(|value| example_reason(&value, side));
    match prove(wider, narrower) {
        Proof::Covers => Compatibility::Compatible,
        Proof::Refuted => {
            let mut breaks = found();
            if breaks.is_empty() {
                let general = || SchemaBreak::new("", general_reason(side));
                breaks.push(example().unwrap_or_else(general));
            }
            Compatibility::Breaking(breaks)
        }
        Proof::Unknown(reason) => match example() {
            Some(example) => {
                let mut breaks = found();
                breaks.push(example);
                Compatibility::Breaking(breaks)
            }
            None => {
                let suspected: Vec<_> = found().iter().map(ToString::to_string).collect();
                Compatibility::Unproven(match suspected.is_empty() {
                    true => reason,
                    false => format!("{reason}; it {}", suspected.join(", ")),
                })
            }
        },
    }
}

fn general_reason(side: Side) -> &'static str {
    match side {
        Side::Input => "refuses arguments that were accepted",
        Side::Output => "allows results that were excluded",
    }
}

/// Maximum length of an example, in characters.
const MAX_EXAMPLE: usize = 200;

fn example_reason(value: &serde_json::Value, side: Side) -> SchemaBreak {
    let text = crate::mismatch::cut(&value.to_string(), MAX_EXAMPLE);
    SchemaBreak::new("", format!("{}, such as {text}", general_reason(side)))
}
