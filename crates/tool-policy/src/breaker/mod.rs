//! Circuit breaker: stops attempts to a backend that keeps failing.

mod circuit;
mod layer;
mod peek;
mod permits;
mod settings;

pub use self::{
    circuit::{Circuit, CircuitOpen, CircuitOutcome, CircuitPermit},
    layer::{Breaker, BreakerLayer},
    peek::{BreakerPeek, BreakerPeekLayer},
    settings::{BreakerScope, BreakerSettings, Breakers},
};
