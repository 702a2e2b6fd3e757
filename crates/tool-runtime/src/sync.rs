//! The locks of semaphores and single flights and the spawn function of flights, in a module of its own: the model
//! (`tests/model`) compiles the same source with locks and tasks whose scheduler tries every interleaving.

pub(crate) use parking_lot::{Mutex, MutexGuard};

pub(crate) use tokio::{spawn, task::AbortHandle};
