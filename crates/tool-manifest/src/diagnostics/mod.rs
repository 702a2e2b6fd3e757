//! Problems with their places, and their rendering.

pub(crate) mod diagnostic;
pub(crate) mod render;
pub(crate) mod report;
