//! End-to-end tests of toolplane: the binary in front of real servers, real clients in front of the binary, and servers
//! that misbehave in all known ways.
//!
//! The tests are in `tests/it`; their client shares no code with the tested one. The library serves the benchmark of
//! the whole process and `toolplane-train`.

pub mod load;
mod own_directories;

pub use self::own_directories::own_directories;
