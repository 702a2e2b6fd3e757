//! Contract of a schema: [`CheckJson`] and the types in its methods.
//!
//! The calls of `tool-core` are checked through this trait, and the schemas of `tool-schema` implement it. Both crates
//! re-export it, so that neither needs the other.
//!
//! # Examples
//!
//! A check that comes from no JSON Schema:
//!
//! ```
//! use tool_check::{CheckError, CheckJson, Mismatch, Problem, serde_json::{Value, json}};
//!
//! /// Accepts objects of at most three members.
//! struct AtMostThree;
//!
//! impl CheckJson for AtMostThree {
//!     fn check(&self, value: &Value) -> Result<(), CheckError> {
//!         match value.as_object() {
//!             Some(members) if members.len() <= 3 => Ok(()),
//!             _ => {
//!                 let problem = Problem::new("", "maxProperties", "the value must be an object of at most 3 properties");
//!                 Err(Mismatch::new(vec![problem]).into())
//!             }
//!         }
//!     }
//! }
//!
//! assert!(AtMostThree.check(&json!({"a": 1})).is_ok());
//! let error = AtMostThree.check(&json!([])).unwrap_err();
//! assert_eq!(error.to_string(), "the value must be an object of at most 3 properties");
//! ```

mod adapt;
mod check;
mod mismatch;

pub use raw_json::{self, RawJson};
pub use serde_json;

pub use self::{
    adapt::{AdaptedArguments, ArgumentHandling, Change, ChangeKind},
    check::{AnyJson, CheckError, CheckJson},
    mismatch::{Mismatch, Problem},
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
