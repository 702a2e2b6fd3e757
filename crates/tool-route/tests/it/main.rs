//! Tests of routes with scripted tools, on a clock that the tests advance.

mod call;
mod choice;
mod definition;
mod plane;
mod simulation;
