//! JSON Schemas of tools, compiled under budgets, and validation that never blocks a call.
//!
//! A schema may come from a server that nobody vouches for, and a value from a model. So compiling counts what it
//! is about to do before it does it, nothing is ever fetched, and every check has a budget of steps: a pair that
//! would take longer is refused with words that say so.
//!
//! ```
//! use raw_json::RawJson;
//! use serde_json::json;
//! use tool_core::CheckJson;
//! use tool_schema::Schema;
//!
//! let schema = RawJson::from(json!({"properties": {"units": {"enum": ["c", "f"]}}, "required": ["city"]}));
//! let schema = Schema::compile(&schema)?;
//! assert!(schema.check(&json!({"city": "Oslo", "units": "c"})).is_ok());
//! let error = schema.check(&json!({"city": "Oslo", "units": "k"})).unwrap_err();
//! assert_eq!(error.to_string(), r#"`/units` must be one of `c`, `f`, not "k""#);
//! # Ok::<(), tool_schema::SchemaError>(())
//! ```
//!
//! # Formats
//! `format` is a remark in every draft and never refuses a value. Validators disagree about what an e-mail address
//! or a URI is; the tool behind the schema knows, and a call that we refuse wrongly cannot be made at all.

mod adapt;
mod defaults;
mod dialect;
mod document;
mod error;
mod explain;
mod lazy;
mod meter;
mod metered;
mod pattern;
mod reference;
mod rule;
mod schema;
mod shape;
mod survey;
mod union;
mod words;

pub use self::{
    defaults::UnusableDefault,
    error::{SchemaError, SchemaErrorKind},
    lazy::{LazySchema, any_object},
    schema::{Schema, SchemaWarning},
    survey::{MAX_DEPTH, MAX_EXPANSION, MAX_SUBSCHEMAS, MAX_TEXT},
};
