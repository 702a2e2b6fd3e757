//! Tests of the store in files.

mod crash;
mod edits;
mod kill;
mod layout;
mod suite;
mod support;
