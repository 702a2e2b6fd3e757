//! Questions to clients in the middle of a call, in the two eras of the protocol: a legacy client is asked by a request, a
//! modern client by the answer to its own request.

mod dialogue;
mod legacy;
mod modern;
mod open_call;
mod page_visit;
mod parked;
mod resume_token;

pub(crate) use self::{
    page_visit::{page_visit_error, unsupported_page_visit},
    parked::ParkedCalls,
};
