//! HTTP APIs as tools.
