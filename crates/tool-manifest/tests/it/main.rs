//! Files in every accepted spelling, and the messages about wrong ones.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bad_input;
mod cache;
mod chaos;
mod clients;
mod code_files;
mod endpoints;
mod environment;
mod fixtures;
mod health;
mod hedge;
mod hostile;
mod idempotency;
mod ladder;
mod limits;
mod loading;
mod own_section;
mod partial;
mod places;
mod plain;
mod policy;
mod schema;
mod search;
mod secrets;
mod short_form;
mod starting;
mod yaml_values;
