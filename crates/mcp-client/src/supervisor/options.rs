use mcp_wire::Era;

use super::{HealthCheck, OnStatus, StartBudget, StartLimit};
use crate::ConnectionOptions;

/// Options of a supervised server.
#[derive(Debug, Clone, Default)]
pub struct UpstreamOptions {
    /// Options of its connections.
    pub connection: ConnectionOptions,
    /// Seed of the jitter. Random if `None`.
    pub jitter_seed: Option<u64>,
    /// Known era of the server, tried first if [`ConnectionOptions::era`] leaves it open.
    pub era: Option<Era>,
    /// Start budget shared with other connections to the same server. A budget of its own if `None`.
    pub budget: Option<StartBudget>,
    /// Limit of concurrent starts shared with other servers.
    pub starts: Option<StartLimit>,
    /// Health check after every start. A start fails if the check fails or takes longer than
    /// [`ConnectionOptions::start_timeout`].
    pub check: Option<HealthCheck>,
    /// Callback for every change of [`Upstream::status`](crate::Upstream::status) as it happens, including an end that
    /// no caller has noticed yet.
    pub on_status: Option<OnStatus>,
}
