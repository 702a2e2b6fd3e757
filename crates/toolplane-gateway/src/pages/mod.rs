//! Pages that the gateway serves over HTTP in addition to MCP: health, readiness, metrics and callbacks.

mod callbacks;
mod gauges;
mod health;
mod metrics;
mod routes;

pub use self::metrics::serve_metrics;
pub(crate) use self::{
    callbacks::PATH as CALLBACKS_PATH, gauges::add_gauges, metrics::MetricsPage, routes::Routes,
};
