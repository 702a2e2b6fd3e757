//! Verbs that write or check a configuration.

pub(crate) mod check;
pub(crate) mod doctor;
pub(crate) mod init;
pub(crate) mod servers;
