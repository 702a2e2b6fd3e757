//! Values of settings: units, and words for sandboxes.

mod sandbox;
mod units;

pub use self::{
    sandbox::{NetworkHosts, SandboxChoice},
    units::{ByteSize, Percent, Period, at_least_one, longer_than_zero, parsed, positive},
};
