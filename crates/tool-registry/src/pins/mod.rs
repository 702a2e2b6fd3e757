//! Pins: the definitions of tools that were accepted. A changed definition is withheld until it is accepted.

mod diff;
mod memory;
mod pin;
mod policy;
mod port;
mod withheld;

use tool_core::PinMode;

pub(crate) use self::withheld::{PinCheck, check_pin};
pub use self::{
    diff::definition_changes,
    memory::MemoryPins,
    pin::{Pin, PinKey, PinSet},
    policy::PinPolicy,
    port::{Pins, PinsError},
    withheld::WithheldDefinition,
};
