//! End-to-end tests of toolplane: the binary in front of real servers, real clients in front of the binary, and
//! servers that misbehave in every way known of.
//!
//! The tests are below `tests/it`; the client there shares no code with the one that is tested. What is here serves the
//! benchmark of the whole process and `toolplane-train`.

pub mod load;
