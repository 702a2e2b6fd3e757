//! Changes to arguments before a call: coercion to the types of the schema, and its defaults.

mod adapt;
mod defaults;

pub use self::defaults::UnusableDefault;
pub(crate) use self::{adapt::adapt, defaults::Defaults};
