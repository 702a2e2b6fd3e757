//! Values that the store keeps for others: secrets, texts, and the pins of definitions.

mod pins;
mod secret;
mod texts;

pub use self::pins::SqlPins;
