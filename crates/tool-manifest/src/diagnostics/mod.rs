//! Problems with their places, and how they are shown.

pub(crate) mod diagnostic;
pub(crate) mod render;
pub(crate) mod report;
