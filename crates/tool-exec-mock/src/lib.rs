//! Mock tools: a fixed result, a result from a file, or a template rendered from the arguments. For trying out a
//! configuration without the systems behind it, and for tests.
//!
//! ```
//! use std::sync::Arc;
//! use tool_core::Executor;
//! use tool_exec_mock::MockExecutor;
//!
//! // Whoever owns the runtime brings the way to wait; this one never does.
//! let executor = MockExecutor::new(Arc::new(|_| Box::pin(std::future::ready(()))));
//! assert_eq!(executor.kind(), "mock");
//! ```
//!
//! # Templates
//! The text around the placeholders is JSON. A placeholder inside a JSON string becomes a part of that string, any
//! other one becomes a JSON value of its own: `{"city": {{ city }}, "text": "Weather for {{ city }}"}`. Whatever an
//! argument holds, it stays inside. Both Jinja's spelling and the simple part of Go's (`{{.city}}`,
//! `{{ if eq .units "c" }}..{{ else }}..{{ end }}`) are understood.

mod executor;
mod go;
mod settings;
mod template;
mod translate;

pub use self::{
    executor::{MockExecutor, Sleep},
    settings::{MockError, MockSettings},
};
