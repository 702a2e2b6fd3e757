//! The head of a request: its headers, and the checks that need nothing else.

mod allow_list;
mod cors;
mod guard;
mod known_headers;
mod mirrored_headers;
mod request_format;

pub use self::allow_list::{AllowList, AllowedHosts, SharedAllowList};
pub(super) use self::{
    cors::Cors,
    guard::{is_host_allowed, is_origin_allowed},
    known_headers::{FoundHeader, KnownHeaders},
    mirrored_headers::{check_mirrored, check_params, refuse_params},
    request_format::{Accepts, RequestFormat},
};
