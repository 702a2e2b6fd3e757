use std::{fmt, sync::OnceLock};

use raw_json::RawJson;
use serde_json::Value;
use tool_core::{AdaptedArguments, ArgumentHandling, CheckError, CheckJson};

use crate::{Schema, SchemaError};

/// A schema that is compiled when it is first asked: a gateway with a thousand tools starts without compiling the
/// nine hundred that nobody calls.
pub struct LazySchema {
    raw: RawJson,
    compiled: OnceLock<Result<Schema, SchemaError>>,
}

/// The schema of a tool that declares none: any object.
#[must_use]
pub fn any_object() -> RawJson {
    RawJson::from(serde_json::json!({"type": "object"}))
}

impl LazySchema {
    /// Keeps a schema without looking at it.
    #[must_use]
    pub fn new(raw: RawJson) -> Self {
        Self {
            raw,
            compiled: OnceLock::new(),
        }
    }

    /// The schema as it was written.
    #[must_use]
    pub fn raw(&self) -> &RawJson {
        &self.raw
    }

    /// The compiled schema, compiled now if it was not yet.
    ///
    /// # Errors
    /// When the schema is not usable: the same answer every time.
    pub fn compiled(&self) -> Result<&Schema, &SchemaError> {
        self.compiled.get_or_init(|| Schema::compile(&self.raw)).as_ref()
    }
}

impl CheckJson for LazySchema {
    fn surely_fits(&self, text: &RawJson) -> bool {
        self.compiled().is_ok_and(|schema| schema.surely_fits(text))
    }

    fn check(&self, value: &Value) -> Result<(), CheckError> {
        match self.compiled() {
            Ok(schema) => schema.check(value),
            Err(error) => Err(CheckError::Schema(error.to_string())),
        }
    }

    fn adapt(&self, arguments: &RawJson, handling: ArgumentHandling) -> Option<AdaptedArguments> {
        self.compiled().ok()?.adapt(arguments, handling)
    }

    fn fill_defaults(&self, arguments: &RawJson) -> Option<AdaptedArguments> {
        self.compiled().ok()?.fill_defaults(arguments)
    }
}

impl From<Schema> for LazySchema {
    fn from(schema: Schema) -> Self {
        let raw = schema.raw().clone();
        Self {
            raw,
            compiled: OnceLock::from(Ok(schema)),
        }
    }
}

impl fmt::Debug for LazySchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazySchema")
            .field("raw", &self.raw)
            .finish_non_exhaustive()
    }
}
