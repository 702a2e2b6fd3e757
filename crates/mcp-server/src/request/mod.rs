//! One request: its parameters, its context, and rounds of input.

mod context;
mod in_flight;
mod input_required;
mod parsed_params;
mod state_seal;

pub use self::{
    context::RequestContext,
    input_required::InputRequired,
    state_seal::{StateKey, StateSeal},
};
pub(crate) use self::{
    in_flight::{InFlight, InFlightRequest},
    parsed_params::ParsedParams,
};
