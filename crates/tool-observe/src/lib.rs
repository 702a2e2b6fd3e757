//! What was called and how it went: spans, logs and events.
