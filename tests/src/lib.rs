//! End-to-end tests of toolplane with real peers.
