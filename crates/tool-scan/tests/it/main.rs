//! The crate from the outside.

mod cleaning;
mod escaping;
mod names;
mod orders;
mod spellings;
