//! Tests of the checks, and the checks as tests.

mod layers;
mod source;
mod tidy;
