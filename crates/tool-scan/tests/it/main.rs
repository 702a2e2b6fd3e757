//! Tests of the public interface.

mod cleaning;
mod escaping;
mod names;
mod orders;
mod spellings;
