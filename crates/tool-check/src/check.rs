use raw_json::{JsonError, RawJson};
use serde_json::Value;

use crate::{AdaptedArguments, ArgumentHandling, Mismatch};

/// Compiled JSON Schema.
pub trait CheckJson: Send + Sync {
    /// Checks a value.
    ///
    /// # Errors
    /// [`CheckError::Mismatch`] if the value does not satisfy the schema, [`CheckError::Schema`] if the schema itself
    /// is not usable.
    fn check(&self, value: &Value) -> Result<(), CheckError>;

    /// Returns the schema as its author wrote it, for the definition of a tool. `None` if the check comes from no JSON
    /// Schema.
    fn document(&self) -> Option<&RawJson> {
        None
    }

    /// Returns `true` if the text certainly satisfies the schema, as far as that shows without building a tree. The
    /// text has no duplicate key. `false` says nothing.
    fn surely_fits(&self, text: &RawJson) -> bool {
        let _ = text;
        false
    }

    /// Changes arguments so that they satisfy the schema, as far as `handling` allows. Returns `None` if there is
    /// nothing to change, or if the schema does not support it. The result may still be invalid and must be checked.
    fn adapt(&self, arguments: &RawJson, handling: ArgumentHandling) -> Option<AdaptedArguments> {
        let _ = (arguments, handling);
        None
    }

    /// Fills in the schema's `default` of each absent member. Returns `None` if there is nothing to fill in. Present
    /// members keep their values, except that absent members within them are filled in. Filling twice changes
    /// nothing.
    fn fill_defaults(&self, arguments: &RawJson) -> Option<AdaptedArguments> {
        let _ = arguments;
        None
    }
}

/// Schema that every value satisfies.
#[derive(Debug, Clone, Copy, Default)]
pub struct AnyJson;

impl CheckJson for AnyJson {
    fn check(&self, _: &Value) -> Result<(), CheckError> {
        Ok(())
    }

    fn surely_fits(&self, _: &RawJson) -> bool {
        true
    }
}

/// Error of a check.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The value does not satisfy the schema.
    #[error("{0}")]
    Mismatch(Mismatch),
    /// The text of the value is not JSON, has a duplicate key or is nested too deep.
    #[error(transparent)]
    Text(#[from] JsonError),
    /// The schema is not usable, so no value can be checked. Contains the reason.
    #[error("the schema is not usable: {0}")]
    Schema(String),
}

impl From<Mismatch> for CheckError {
    fn from(mismatch: Mismatch) -> Self {
        Self::Mismatch(mismatch)
    }
}
