//! Credential refresh: renews credentials that the backend refused, once, and attempts again.

mod layer;
mod settings;

pub use self::{
    layer::{CredentialRefresh, CredentialRefreshLayer},
    settings::CredentialSettings,
};
