//! Credential refresh: renews credentials that the backend refused, once, and attempts again.

mod layer;

pub use self::layer::{CredentialRefresh, CredentialRefreshLayer};
