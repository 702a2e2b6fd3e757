//! Servers that break the protocol, played over an in-memory stream.
