//! Supervision of servers: lazy start, restart with exponential backoff, health checks.

mod backoff;
mod endpoint;
mod era_change;
mod health_check;
mod options;
mod start_budget;
mod start_limit;
mod status;
mod supervision;
mod upstream;

pub use self::{
    endpoint::Endpoint,
    health_check::HealthCheck,
    options::UpstreamOptions,
    start_budget::StartBudget,
    start_limit::StartLimit,
    status::{OnStatus, ServerState, ServerStatus},
    upstream::Upstream,
};
