//! JSON text that keeps its bytes: validated in one pass, then read, compared and spliced without building a tree.
//!
//! A gateway that parses a value and serializes it again changes it: long integers are rounded, `1e2` becomes `100.0`,
//! keys are sorted, unknown members vanish. [`RawJson`] is the text itself, a cheap slice of the message that contained
//! it.
//!
//! # Examples
//!
//! ```
//! use raw_json::RawJson;
//!
//! let result = RawJson::parse(r#"{"id": 12345678901234567890123, "rate": 1e2}"#)?;
//! assert_eq!(result.get("rate").unwrap().as_str(), "1e2");
//! let marked = result.with_members(&[("cached", RawJson::from(true))])?;
//! assert_eq!(marked.as_str(), r#"{"id": 12345678901234567890123, "rate": 1e2,"cached":true}"#);
//! # Ok::<(), raw_json::JsonError>(())
//! ```

mod canonical;
mod convert;
mod error;
mod indexed;
mod limits;
mod members;
mod raw_json;
mod scan;
mod spaces;
mod splice;
mod value_index;

pub use bytes;
pub use bytestring;
pub use serde;
pub use serde_json;

#[cfg(feature = "digest")]
pub use self::canonical::{digest, text_digest};
pub use self::{
    canonical::{canonical, hex},
    error::{JsonError, JsonErrorKind},
    indexed::IndexedJson,
    limits::{DuplicateKeys, JsonLimits},
    members::{Items, Members, PartItems, Parts, TextPart},
    raw_json::{JsonKind, RawJson},
    scan::validate,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
