//! Pins: the definitions of tools that were accepted. A changed definition is withheld until it is accepted.

mod memory;
mod pin;
mod port;

pub use self::{
    memory::MemoryPins,
    pin::{Pin, PinKey, PinSet},
    port::{Pins, PinsError},
};
