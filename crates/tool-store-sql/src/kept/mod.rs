//! Values that the store keeps for others: secrets, texts, the pins of definitions, and uses of tools.

mod list_state;
mod pins;
mod secret;
mod texts;
mod usage;

pub use self::{pins::SqlPins, usage::SqlUsage};
