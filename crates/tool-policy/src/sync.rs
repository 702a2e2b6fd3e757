//! The lock of a circuit, in a module of its own: the model of the breaker (`tests/model`) compiles the same source with a
//! lock whose scheduler tries every interleaving.

pub(crate) use parking_lot::Mutex;
