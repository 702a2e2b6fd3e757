//! Tests of the engine alone.

mod filters;
mod naive;
mod names;
mod usage;
