use mcp_wire::Era;

use super::{HealthCheck, OnStatus, ServerStatus, StartBudget, StartLimit};
use crate::ConnectionOptions;

/// Options of a supervised server.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
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

impl UpstreamOptions {
    /// Sets the options of its connections.
    #[must_use]
    pub fn connection(mut self, options: ConnectionOptions) -> Self {
        self.connection = options;
        self
    }

    /// Sets the seed of the jitter.
    #[must_use]
    pub fn jitter_seed(mut self, seed: u64) -> Self {
        self.jitter_seed = Some(seed);
        self
    }

    /// Sets the known era of the server.
    #[must_use]
    pub fn era(mut self, era: Era) -> Self {
        self.era = Some(era);
        self
    }

    /// Sets the start budget that is shared with other connections to the same server.
    #[must_use]
    pub fn budget(mut self, budget: StartBudget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Sets the limit of concurrent starts that is shared with other servers.
    #[must_use]
    pub fn starts(mut self, limit: StartLimit) -> Self {
        self.starts = Some(limit);
        self
    }

    /// Sets the health check after every start.
    #[must_use]
    pub fn check(mut self, check: HealthCheck) -> Self {
        self.check = Some(check);
        self
    }

    /// Sets the callback for every change of the status, see [`OnStatus::new`].
    #[must_use]
    pub fn on_status(mut self, callback: impl Fn(&ServerStatus) + Send + Sync + 'static) -> Self {
        self.on_status = Some(OnStatus::new(callback));
        self
    }
}
