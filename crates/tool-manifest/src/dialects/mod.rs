//! File formats that are read as manifests: ours, and those of other programs.

pub(crate) mod detect;
pub(crate) mod file;
pub(crate) mod kiwi;
pub(crate) mod manifest;
pub(crate) mod okso;
pub(crate) mod promptkit;
