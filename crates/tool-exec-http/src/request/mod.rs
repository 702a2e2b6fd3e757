//! Requests: building them for a call, and showing them without secrets.

mod build;
mod preview;

pub(crate) use self::build::Request;
