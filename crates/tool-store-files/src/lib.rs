//! Store of tools in a directory of readable files, fit for version control.
//!
//! ```text
//! store.json                          format of the directory
//! tools/greet/tool.json               owner, versions with states and digests, latest version, history
//! tools/greet/1.0.0/manifest.json     content of a version, which never changes
//! tools/greet/1.0.0/files/main.py
//! aliases.json
//! servers/github.json
//! .toolplane/                         lock, revisions and journal of this machine, ignored by git
//! ```
//!
//! - **Atomicity.** A change is written beside the present files, and then named by a journal, whose appearance is the commit.
//!   Whoever opens the directory next completes a change that was interrupted after its commit; one before it has no effect.
//! - **Concurrency.** Readers hold a shared lock and writers an exclusive one, on a file in `.toolplane`. A change of a tool
//!   that somebody else changed meanwhile is a conflict.
//! - **Edits by other programs** are noticed by the digests of the documents, and count as changes. Content that does not
//!   have the digest of its version is refused.

mod content;
mod disk;
mod documents;
mod file_options;
mod file_store;
mod journal;
mod marks;
mod operations;
mod state;
mod tree;

pub use self::{file_options::FileStoreOptions, file_store::FileStore};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
