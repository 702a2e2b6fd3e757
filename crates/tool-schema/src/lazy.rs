use std::{fmt, sync::OnceLock};

use raw_json::RawJson;
use serde_json::Value;
use tool_check::{AdaptedArguments, ArgumentHandling, CheckError, CheckJson};

use crate::{Schema, SchemaError};

/// Schema that is compiled on first use, so that a gateway with a thousand tools starts without compiling the nine hundred
/// that are never called.
///
/// # Examples
///
/// ```
/// use tool_schema::{LazySchema, any_object, serde_json::json};
///
/// let schema = LazySchema::new(any_object());
/// assert!(schema.check(&json!({"a": 1})).is_ok());
/// ```
pub struct LazySchema {
    raw: RawJson,
    /// Boxed: a compiled schema is larger than everything else that an uncalled tool holds.
    compiled: OnceLock<Result<Box<Schema>, Box<SchemaError>>>,
}

/// Returns the schema of a tool that declares none, which accepts any object.
#[must_use]
pub fn any_object() -> RawJson {
    RawJson::from(serde_json::json!({"type": "object"}))
}

impl LazySchema {
    /// Creates a lazy schema. It is not validated yet.
    #[must_use]
    pub fn new(raw: RawJson) -> Self {
        Self {
            raw,
            compiled: OnceLock::new(),
        }
    }

    /// Returns the schema with its original bytes.
    #[must_use]
    pub fn raw(&self) -> &RawJson {
        &self.raw
    }

    /// Returns the compiled schema, and compiles it on the first call.
    ///
    /// # Errors
    /// Returns an error if the schema is not usable. The result is the same for every call.
    pub fn compiled(&self) -> Result<&Schema, &SchemaError> {
        let compile = || Schema::compile(&self.raw).map(Box::new).map_err(Box::new);
        match self.compiled.get_or_init(compile) {
            Ok(schema) => Ok(schema),
            Err(error) => Err(error),
        }
    }

    /// Checks a value: see [`Schema::check`].
    ///
    /// # Errors
    /// Returns the errors of [`Schema::check`], and [`CheckError::Schema`] if the schema is not usable.
    pub fn check(&self, value: &Value) -> Result<(), CheckError> {
        self.usable()?.check(value)
    }

    /// Checks a value that is JSON text: see [`Schema::check_text`].
    ///
    /// # Errors
    /// Returns the errors of [`Schema::check_text`], and [`CheckError::Schema`] if the schema is not usable.
    pub fn check_text(&self, text: &str) -> Result<(), CheckError> {
        self.usable()?.check_text(text)
    }

    fn usable(&self) -> Result<&Schema, CheckError> {
        self.compiled()
            .map_err(|error| CheckError::Schema(error.reason().to_owned()))
    }
}

impl CheckJson for LazySchema {
    fn surely_fits(&self, text: &RawJson) -> bool {
        self.compiled().is_ok_and(|schema| schema.surely_fits(text))
    }

    fn check(&self, value: &Value) -> Result<(), CheckError> {
        Self::check(self, value)
    }

    fn document(&self) -> Option<&RawJson> {
        Some(&self.raw)
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
            compiled: OnceLock::from(Ok(Box::new(schema))),
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
