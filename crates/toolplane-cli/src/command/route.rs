use std::time::Duration;

use clap::{Args, ValueEnum};

/// `toolplane route`
#[derive(Debug, Args)]
pub(crate) struct Route {
    /// Capability that a tool must have, or the name of a route of the configuration
    #[arg(value_name = "CAPABILITY")]
    pub(crate) wanted: String,
    /// Show all candidates with their scores and reasons
    #[arg(long)]
    pub(crate) explain: bool,
    /// Only tools with this tag; may be given more than once
    #[arg(long, value_name = "NAME")]
    pub(crate) tag: Vec<String>,
    /// Capability or tag that a tool is the better for; may be given more than once
    #[arg(long, value_name = "NAME")]
    pub(crate) requirement: Vec<String>,
    /// Figure that counts besides health; may be given more than once
    #[arg(long, value_enum)]
    pub(crate) priority: Vec<Priority>,
    /// Maximum latency of a tool, measured or declared
    #[arg(long, value_name = "TIME", value_parser = crate::output::text::duration)]
    pub(crate) max_latency: Option<Duration>,
    /// Maximum cost of a call, in US dollars
    #[arg(long, value_name = "DOLLARS")]
    pub(crate) max_cost: Option<f64>,
    /// Minimum share of successful calls in percent, measured or declared
    #[arg(long, value_name = "PERCENT")]
    pub(crate) min_sla: Option<f64>,
}

/// Figure that counts in the choice of a tool, besides its health.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Priority {
    /// Latency
    Speed,
    /// Cost of a call
    Cost,
    /// Share of failed calls
    Reliability,
}
