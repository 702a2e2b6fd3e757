//! Access to the checkout, its packages, other programs and the terminal.

pub(crate) mod console;
pub(crate) mod members;
pub(crate) mod process;
pub(crate) mod repository;
pub(crate) mod tools;
