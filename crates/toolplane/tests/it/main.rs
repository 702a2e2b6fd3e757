//! The standard stack around scripted executors, and the facade around configurations.

mod chaos;
#[cfg(feature = "exec-mock")]
mod configured;
mod events;
mod health;
mod limits;
#[cfg(feature = "exec-mock")]
mod resilience;
mod stack;
