//! Parameters of requests and notifications, and the `_meta` in them.

mod meta;
mod mirrored_params;
mod params;

pub use self::{
    meta::{cancelled_params, meta, progress_token, with_meta, without_progress_token},
    mirrored_params::{MirroredParam, MirroredParams},
    params::Params,
};
