//! The contract's own rules.

mod arguments;
mod context;
mod credentials;
mod health;
mod lifecycle;
mod name;
mod retry_after;
mod template;
mod tool;
mod trace;
