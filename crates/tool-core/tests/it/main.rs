//! The contract's own rules.

mod arguments;
mod context;
mod name;
mod template;
mod tool;
