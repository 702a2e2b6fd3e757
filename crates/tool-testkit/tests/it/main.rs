//! Tests of what other tests rely on.
#![cfg(test)]

mod peers;
