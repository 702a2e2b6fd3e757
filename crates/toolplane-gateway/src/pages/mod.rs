//! Pages that the gateway serves over HTTP in addition to MCP: health, readiness and metrics.

mod gauges;
mod health;
mod metrics;
mod routes;

pub use self::metrics::serve_metrics;
pub(crate) use self::{gauges::add_gauges, metrics::MetricsPage, routes::Routes};
