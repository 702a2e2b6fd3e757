//! Argument size: refuses arguments that are larger than the operator allows.

mod layer;
mod settings;

pub use self::{
    layer::{ArgumentSize, ArgumentSizeLayer},
    settings::MaxArgumentsBytes,
};
