use mcp_wire::Era;

use super::{HealthCheck, OnStatus, StartBudget, StartLimit};
use crate::ConnectionOptions;

/// How a server is supervised.
#[derive(Debug, Clone, Default)]
pub struct UpstreamOptions {
    /// How its connections are opened.
    pub connection: ConnectionOptions,
    /// What the jitter of pauses is computed from; chosen at random when not set.
    pub jitter_seed: Option<u64>,
    /// The era that the server is known to speak: it is tried first where [`ConnectionOptions::era`] leaves it open.
    pub era: Option<Era>,
    /// How often it is started, where it shares that with other connections to the same server.
    pub budget: Option<StartBudget>,
    /// How many servers are started at the same time, where it shares that with others.
    pub starts: Option<StartLimit>,
    /// What the server is asked whenever it was started: one that does not answer within
    /// [`ConnectionOptions::start_timeout`], or reports a failure, has failed to start.
    pub check: Option<HealthCheck>,
    /// Is told of every change of [`Upstream::status`] as it happens, also of an end that nobody has noticed yet.
    pub on_status: Option<OnStatus>,
}
