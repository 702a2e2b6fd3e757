//! Scanner for suspicious text in tool definitions: invisible characters, characters that change the direction of text,
//! terminal sequences, comments and markup that hide text, and sentences that give orders to a model (tool poisoning). Also
//! escapes such text for people and models, removes it if an operator asks for that, and finds names that look alike.
//!
//! Foreign text is never changed silently: [`scan`] only reports, [`escape_line`] keeps each character readable as
//! `\u{202e}`, and the functions of [`clean`] report whether anything was removed.
//!
//! # Examples
//! ```
//! let definition = raw_json::RawJson::parse(r#"{"name":"add","description":"Adds.\u202e"}"#).unwrap();
//! let findings = tool_scan::scan(&definition);
//! assert_eq!(findings[0].place, "/description");
//! assert_eq!(findings[0].excerpt, r"Adds.\u{202e}");
//! ```

pub mod clean;
mod confusable;
mod escape;
mod hidden;
mod markup;
mod normalize;
mod phrases;
mod scan;

pub use raw_json;

pub use self::{
    confusable::{has_mixed_scripts, name_skeleton},
    escape::{escape_for_model, escape_json, escape_line, escape_lines},
    hidden::{CharClass, HiddenChar, hidden_chars, is_hidden},
    scan::{Finding, FindingKind, MAX_FINDINGS, scan, scan_text},
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
