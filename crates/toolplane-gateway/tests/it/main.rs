//! The gateway in front of scripted and mock tools, with messages as bytes.

mod calls;
mod embedding;
mod lists;
mod support;
