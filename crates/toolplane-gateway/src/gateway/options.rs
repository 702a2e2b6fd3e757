use std::{fmt, sync::Arc, time::Duration};

use mcp_server::ServerIdentity;
use toolplane::observe::Metrics;

use crate::client::CallerResolver;

/// Options of a [`Gateway`](crate::Gateway).
#[derive(Clone)]
#[non_exhaustive]
pub struct GatewayOptions {
    /// Identity of the server that clients see: by default `toolplane` in this crate's version.
    pub info: ServerIdentity,
    /// Maximum number of items on one page of a list: 1,000.
    pub page_size: usize,
    /// Time that a list waits for a server whose list is unknown, counted from the server's first start: 4 s.
    pub list_wait: Duration,
    /// Maps principals to callers. By default `local` and `anonymous` are the toolplane's own callers, and any other
    /// principal is a caller without permissions.
    pub caller_resolver: Option<CallerResolver>,
    /// Metrics that receive the gateway's own gauges. To count calls, the toolplane must have them as an observer as well.
    pub metrics: Option<Arc<Metrics>>,
    /// `true` if [`Gateway::serve_http`](crate::Gateway::serve_http) serves the metrics at `/metrics`: by default `false`.
    pub serves_metrics: bool,
}

impl Default for GatewayOptions {
    fn default() -> Self {
        Self {
            info: ServerIdentity::new("toolplane", env!("CARGO_PKG_VERSION")),
            page_size: 1000,
            list_wait: Duration::from_secs(4),
            caller_resolver: None,
            metrics: None,
            serves_metrics: false,
        }
    }
}

impl fmt::Debug for GatewayOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayOptions")
            .field("info", &self.info)
            .field("page_size", &self.page_size)
            .field("list_wait", &self.list_wait)
            .field("caller_resolver", &self.caller_resolver.is_some())
            .field("metrics", &self.metrics)
            .field("serves_metrics", &self.serves_metrics)
            .finish()
    }
}
