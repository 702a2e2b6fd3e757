//! Tests of the engine alone.

mod filters;
mod hidden;
mod naive;
mod names;
mod usage;
