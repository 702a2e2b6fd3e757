//! Intent: records a call durably before it is sent.

mod layer;
mod settings;

pub use self::{
    layer::{Intent, IntentLayer},
    settings::IntentSettings,
};
