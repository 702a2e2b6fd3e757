//! Pins: the definitions of tools that were accepted. A changed definition is withheld until it is accepted.

mod diff;
mod lock_drift;
mod lock_file;
mod lock_format;
mod lock_pins;
mod memory;
mod pin;
mod policy;
mod port;
mod withheld;

use tool_core::PinMode;

pub use self::{
    diff::definition_changes,
    lock_drift::LockDrift,
    lock_file::{InstalledKind, LockFile},
    lock_pins::LockFilePins,
    memory::MemoryPins,
    pin::{Pin, PinKey, PinSet, StoredPins},
    policy::PinPolicy,
    port::{Pins, PinsError},
    withheld::WithheldDefinition,
};
pub(crate) use self::{
    policy::upstream_name,
    withheld::{PinCheck, check_pin},
};
