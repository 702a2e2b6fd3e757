//! Extensions of the host program: tools, executors, sources, layers and telemetry.

pub(crate) mod extensions;
pub(crate) mod layers;
pub(crate) mod stored_manifests;
pub(crate) mod telemetry;
