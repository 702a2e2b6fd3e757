//! End-to-end tests of toolplane: the binary in front of real servers, real clients in front of the binary, and
//! servers that misbehave in every way known of.
//!
//! Everything is below `tests/it`; the client there shares no code with the one that is tested.
