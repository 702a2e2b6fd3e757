//! Circuit breaker: stops attempts to a backend that keeps failing.

mod circuit;
mod layer;
mod settings;

pub use self::{
    circuit::{Circuit, HeldBack, Permit, Verdict},
    layer::{Breaker, BreakerLayer, BreakerPeek, BreakerPeekLayer},
    settings::{BreakerScope, BreakerSettings, Breakers},
};
