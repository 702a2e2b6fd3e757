//! What guards a circuit. A module of its own, so that the model of the breaker (`tests/model`) can compile the very same
//! source with locks in their place whose every order a scheduler tries.

pub(crate) use std::sync::{Mutex, PoisonError};
