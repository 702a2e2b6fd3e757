//! Tests of the checks, and the checks as tests.
#![cfg(test)]

mod ci;
mod docs;
mod layers;
mod packages;
mod source;
mod tidy;
