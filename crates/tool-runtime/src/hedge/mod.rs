//! Hedge: sends a second attempt when the first is slow.

mod layer;
mod settings;

pub use self::{
    layer::{Hedge, HedgeLayer},
    settings::{HedgeAfter, HedgePercent, HedgeSettings},
};
