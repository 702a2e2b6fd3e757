//! Test support: scripted executors, ready-made tools and calls, the third-party peers of end-to-end
//! tests, and the code blocks of the book.
//!
//! # Examples
//!
//! ```
//! use serde_json::json;
//! use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool};
//!
//! let executor = ScriptedExecutor::new([ScriptStep::Value(json!("done"))]);
//! let tool = TestTool::new("job").build(executor.clone());
//! assert_eq!(&**tool.name(), "job");
//! assert_eq!(executor.n_calls(), 0);
//! ```

mod book;
mod executor;
mod file_uris;
mod peers;
mod scripted_executor;
mod target;
mod test_tool;

pub use self::{
    book::{BookPage, CodeBlock},
    executor::executor,
    file_uris::{FileReader, file_readers, file_spelling},
    peers::{PeerCommand, Peers, Skip, skip},
    scripted_executor::{ScriptStep, ScriptedExecutor},
    target::{FixedSecrets, call_with_mark},
    test_tool::{TestTool, call},
};
