//! Callers: their authentication, and the principals and roles that give them permissions.

pub(crate) mod authentication;
pub(crate) mod principals;
