//! Extensions of the host program: tools, executors, sources, layers and telemetry.

#[cfg(feature = "exec-container")]
pub(crate) mod containers;
#[cfg(feature = "exec-endpoint")]
pub(crate) mod endpoints;
pub(crate) mod extensions;
pub(crate) mod layers;
#[cfg(feature = "routes")]
pub(crate) mod routes;
#[cfg(feature = "exec-script")]
pub(crate) mod scripts;
pub(crate) mod stored_manifests;
pub(crate) mod telemetry;
#[cfg(feature = "workflows")]
pub(crate) mod workflows;
