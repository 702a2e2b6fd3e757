//! Circuit breaker: stops attempts to a backend that keeps failing.

mod circuit;
mod layer;

pub use self::{
    circuit::{Circuit, HeldBack, Permit, Verdict},
    layer::{Breaker, BreakerLayer, BreakerPeek, BreakerPeekLayer},
};
