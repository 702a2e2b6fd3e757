//! Catalogs from the view of their users.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bundles;
mod directory;
mod foreign;
mod index;
mod server_json;
mod signatures;
