//! Operations of a document: their names, servers and credentials.

mod list;
mod names;
mod security;
mod server;

pub(crate) use self::{
    list::{Operation, operations},
    names::names,
    security::{Credential, CredentialPlace, Requirements},
    server::{base_url, checked_option},
};
