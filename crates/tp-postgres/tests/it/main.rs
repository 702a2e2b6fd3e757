//! Tests of the servers: they run, stop, and leave nothing behind.

mod server;
