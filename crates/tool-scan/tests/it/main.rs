//! The crate from the outside.

mod cleaning;
mod corpus;
mod escaping;
mod names;
mod orders;
mod spellings;
