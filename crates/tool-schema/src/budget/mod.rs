//! Budgets: estimates of what a check can cost, and values that count the steps of a check.

mod cost;
mod meter;
mod metered;
mod pattern;
mod size;

pub use self::cost::{MAX_DEPTH, MAX_EXPANSION, MAX_SUBSCHEMAS, MAX_TEXT};
pub(crate) use self::{
    cost::{
        BELOW, BELOW_LISTS, BELOW_MAPS, DEFINITIONS, IN_PLACE, IN_PLACE_LISTS, IN_PLACE_MAPS, SchemaCost,
        estimate_cost,
    },
    meter::{Price, with_budget},
    metered::{Metered, MeteredNode, is_genuine},
    size::Size,
};
