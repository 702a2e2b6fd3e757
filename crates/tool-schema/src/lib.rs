//! JSON Schemas of tools, compiled under budgets, and validation that never blocks a call.
//!
//! A schema may come from an untrusted server, and a value from a model. So the cost of compiling is estimated first,
//! nothing is ever fetched, and every check has a budget of steps. A check that exceeds it is refused with a message that
//! says so.
//!
//! # Examples
//!
//! ```
//! use tool_schema::{Schema, serde_json::json};
//!
//! let schema: Schema = r#"{"properties": {"units": {"enum": ["c", "f"]}}, "required": ["city"]}"#.parse()?;
//! assert!(schema.check(&json!({"city": "Oslo", "units": "c"})).is_ok());
//! let error = schema.check_text(r#"{"city": "Oslo", "units": "k"}"#).unwrap_err();
//! assert_eq!(error.to_string(), r#"`/units` must be one of `c`, `f`, not "k""#);
//! # Ok::<(), tool_schema::SchemaError>(())
//! ```
//!
//! # Formats
//! `format` is an annotation in every draft and never refuses a value. Validators disagree about valid e-mail addresses and
//! URIs. The tool itself can check them, while a call that is refused wrongly cannot be made at all.

mod arguments;
mod budget;
mod compatibility;
mod compile;
mod dialect;
mod document;
mod error;
mod fast_check;
mod lazy;
mod mismatch;
mod reference;
mod schema;
mod verify;

pub use raw_json::{self, JsonError, RawJson};
pub use serde_json;
pub use tool_check::{
    AdaptedArguments, ArgumentHandling, Change, ChangeKind, CheckError, CheckJson, Mismatch, Problem,
};

pub use self::{
    arguments::UnusableDefault,
    budget::{MAX_DEPTH, MAX_EXPANSION, MAX_SUBSCHEMAS, MAX_TEXT},
    compatibility::{
        Compatibility, SchemaBreak, ToolSchemas, VersionBump, compatibility, output_compatibility,
        required_bump,
    },
    error::{SchemaError, SchemaErrorKind},
    lazy::{LazySchema, any_object},
    schema::{Schema, SchemaWarning},
    verify::verify,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
