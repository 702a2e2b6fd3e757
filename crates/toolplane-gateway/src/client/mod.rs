//! The client of a request: who it is, and the channel back to it.

mod authentication;
mod channel;
mod identity;
mod key;
mod question;

pub use self::identity::CallerResolver;
pub(crate) use self::{
    authentication::PlaneAuthentication,
    channel::{ANSWER_TIMEOUT, ClientChannel, ProgressChannel, askable_capabilities, forward_log},
    identity::{ANONYMOUS, ClientIdentities, client_identity, resolve_caller},
    key::{client_key, connection_key, connection_of, declared_capabilities},
    question::parse_question,
};
