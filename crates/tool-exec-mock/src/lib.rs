//! Mock tools: executor of kind `mock`, which answers with a fixed result, a result from a file, or a template rendered
//! from the arguments. For trying out a configuration without the systems behind it, and for tests.
//!
//! # Examples
//!
//! ```
//! use std::sync::Arc;
//! use tool_core::Executor;
//! use tool_exec_mock::MockExecutor;
//!
//! // The owner of the runtime provides the sleep function; this one never waits.
//! let executor = MockExecutor::new(Arc::new(|_| Box::pin(std::future::ready(()))));
//! assert_eq!(executor.kind(), "mock");
//! ```
//!
//! # Templates
//! The text around the placeholders is JSON. A placeholder inside a JSON string becomes a part of that string, any other
//! one becomes a JSON value: `{"city": {{ city }}, "text": "Weather for {{ city }}"}`. The content of an argument never
//! changes the structure of the JSON. The syntax is that of Jinja, or the simple part of Go's `text/template` (`{{.city}}`,
//! `{{ if eq .units "c" }}..{{ else }}..{{ end }}`).

mod executor;
mod go;
mod settings;
mod template;
mod translate;

pub use tool_core::serde_json;

pub use self::{
    executor::{MockExecutor, Sleep},
    settings::{MockError, MockSettings},
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
