//! Responses: decoding bodies, selecting the result, and mapping statuses and failures to errors.

mod body;
mod decode;
mod failure;
mod response_path;
mod status;
mod stream;

pub(crate) use self::{
    body::{BodyChunks, BodyLimits, silent, within},
    decode::{MediaType, decode_body},
    failure::{Failure, broken, error_response, failed_work, not_connected, with_unknown_outcome},
    response_path::{PathError, ResponsePath},
    status::{ExpectedStatus, is_gateway_error, refuses_credentials},
    stream::{StreamFormat, StreamReader},
};
