//! What guards gates and flights, and begins the work of flights. A module of its own, so that the model (`tests/model`) can
//! compile the very same source with locks and tasks in their place whose every order a scheduler tries.

pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) use tokio::{spawn, task::AbortHandle};
