//! Tests of the test support.
#![cfg(test)]

mod peers;
