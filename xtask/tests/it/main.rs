//! Tests of the checks, and the checks as tests.
#![cfg(test)]

mod layers;
mod source;
mod tidy;
