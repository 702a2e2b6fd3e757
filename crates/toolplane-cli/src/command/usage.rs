use clap::{Args, ValueEnum};
use toolplane::core::UtcDay;

/// `toolplane usage`
#[derive(Debug, Args)]
pub(crate) struct Usage {
    /// Group the calls by this; may be given more than once. By tool without it
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with_all = ["unused", "deprecated"])]
    pub(crate) by: Vec<UsageBy>,
    /// First day in UTC, such as `2026-11-01`, or the length of the period, such as `7d`; `30d` by default, or what is kept
    #[arg(long, value_name = "DAY", value_parser = since)]
    pub(crate) since: Option<Since>,
    /// Last day; today by default
    #[arg(long, value_name = "DAY", value_parser = day)]
    pub(crate) until: Option<UtcDay>,
    /// Only calls of this tool
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Only calls by this principal
    #[arg(long, value_name = "NAME")]
    pub(crate) principal: Option<String>,
    /// Only calls in this tenant
    #[arg(long, value_name = "NAME")]
    pub(crate) tenant: Option<String>,
    /// Only calls of tools of this server
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Option<String>,
    /// Print comma-separated values (RFC 4180)
    #[arg(long)]
    pub(crate) csv: bool,
    /// List the offered tools that nobody has called
    #[arg(long, conflicts_with_all = ["tool", "principal", "tenant", "server"])]
    pub(crate) unused: bool,
    /// List the deprecated versions of the store, and who still calls them
    #[arg(long, conflicts_with_all = ["unused", "tool", "principal", "tenant", "server"])]
    pub(crate) deprecated: bool,
}

/// Dimension by which calls are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum UsageBy {
    /// Day in UTC
    Day,
    /// Tool
    Tool,
    /// Version of a tool
    Version,
    /// Server that runs the tool, or host of its API
    Server,
    /// Principal that called
    Principal,
    /// Tenant of the principal
    Tenant,
}

/// First day of a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Since {
    /// This day.
    Day(UtcDay),
    /// This number of days before the end of the period, its last day included.
    Days(u32),
}

fn day(text: &str) -> Result<UtcDay, String> {
    UtcDay::parse(text).ok_or_else(|| "write a day, such as `2026-11-01`".to_owned())
}

fn since(text: &str) -> Result<Since, String> {
    if let Some(day) = UtcDay::parse(text) {
        return Ok(Since::Day(day));
    }
    let n_days = text.strip_suffix('d').and_then(|number| number.parse().ok());
    match n_days {
        Some(n_days) if n_days > 0 => Ok(Since::Days(n_days)),
        _ => Err("write a day, such as `2026-11-01`, or a number of days, such as `7d`".to_owned()),
    }
}
