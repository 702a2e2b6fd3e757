//! Requests that make a call, from their parameters to their answers.

mod answer;
mod incoming;
mod mirrored_params;
mod shape;
mod subject;

pub(crate) use self::{
    incoming::{IncomingRequest, RoundResult},
    mirrored_params::MirroredParamsCache,
    subject::resource_uri,
};
