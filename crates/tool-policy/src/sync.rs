//! Mutex of a circuit. It is a module of its own, so that the model tests (`tests/model`) can compile the same source with a
//! mutex whose scheduler tries every interleaving.

pub(crate) use parking_lot::Mutex;
