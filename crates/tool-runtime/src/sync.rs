//! Mutex of semaphores and single flights, and spawn function of flights. They are a module of their own, so that the model tests
//! (`tests/model`) can compile the same source with a mutex and tasks whose scheduler tries every interleaving.

pub(crate) use parking_lot::{Mutex, MutexGuard};

pub(crate) use tokio::{spawn, task::AbortHandle};
