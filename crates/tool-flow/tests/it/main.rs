//! Definitions of workflows: what is refused, with its place.

mod against;
mod definition;
mod graph;
