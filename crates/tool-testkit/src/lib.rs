//! Scripted executors, clocks and fixtures for tests.
