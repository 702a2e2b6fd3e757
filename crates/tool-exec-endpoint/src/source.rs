use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use tokio::time::{Instant, sleep};
use tool_core::{BoxFuture, Catalogue, Feature, OnUpdate, Source, SourceState, SourceStatus};

use crate::{CommandEndpoint, endpoint::LoadState};

/// Backoff after the list could not be read: doubled each time, up to the maximum.
const MIN_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(60);
/// Minimum interval at which the list is read again.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// Length of a prefix that is cut together with the name.
const MAX_PREFIX: usize = 55;

impl CommandEndpoint {
    /// Returns the endpoint as a source of tools. A failure to list them is logged, and shown by the status.
    #[must_use]
    pub fn source(self: &Arc<Self>) -> Arc<dyn Source> {
        Arc::new(EndpointSource(self.clone()))
    }

    /// Reads the list unless it was read before. Concurrent callers share one attempt, and callers during the backoff share its
    /// failure.
    async fn load_list(self: &Arc<Self>) {
        let seen = *self.n_attempts.borrow();
        let mut load = self.load.lock().await;
        let is_pausing = load.retry_at.is_some_and(|at| Instant::now() < at);
        if load.is_listed || is_pausing || *self.n_attempts.borrow() != seen {
            return;
        }
        self.enter(SourceState::Starting);
        let mut abandoned = Abandoned(Some(self));
        self.read_list(&mut load).await;
        abandoned.0 = None;
        self.n_attempts.send_modify(|n| *n += 1);
        if !std::mem::replace(&mut load.is_followed, true) {
            tokio::spawn(follow(Arc::downgrade(self), self.settings.refresh_interval));
        }
    }

    async fn read_list(&self, load: &mut LoadState) {
        match self.refresh().await {
            Ok(()) => (load.is_listed, load.retry_at, load.n_failures) = (true, None, 0),
            Err(()) => {
                let pause = MIN_BACKOFF.saturating_mul(1 << load.n_failures.min(6));
                load.retry_at = Some(Instant::now() + pause.min(MAX_BACKOFF));
                load.n_failures = load.n_failures.saturating_add(1);
            }
        }
    }
}

/// Guard of a list that is read for a caller. Whoever stops waiting has stopped the program.
struct Abandoned<'a>(Option<&'a CommandEndpoint>);

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if let Some(endpoint) = self.0 {
            let reason = "nobody waited until it had listed its tools".to_owned();
            endpoint.enter(SourceState::Failed(reason));
        }
    }
}

/// Reads the list again and again, as long as the endpoint is used. So an endpoint that failed comes back by itself.
async fn follow(endpoint: Weak<CommandEndpoint>, interval: Duration) {
    loop {
        sleep(interval.max(MIN_INTERVAL)).await;
        let Some(endpoint) = endpoint.upgrade() else {
            return;
        };
        let mut load = endpoint.load.lock().await;
        endpoint.read_list(&mut load).await;
    }
}

/// View of an endpoint as a source of tools.
struct EndpointSource(Arc<CommandEndpoint>);

impl Source for EndpointSource {
    fn name(&self) -> &str {
        &self.0.settings.name
    }

    fn snapshot(&self) -> Arc<Catalogue> {
        self.0.catalogue.borrow().clone()
    }

    fn load(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.load_list())
    }

    fn changed(&self, seen: u64) -> BoxFuture<'_, ()> {
        let mut catalogue = self.0.catalogue.subscribe();
        Box::pin(async move {
            // The sender lives as long as the endpoint, which this future borrows.
            let _ = catalogue.wait_for(|catalogue| catalogue.revision != seen).await;
        })
    }

    fn may_hold(&self, feature: Feature, name: &str) -> bool {
        let prefix = &self.0.settings.prefix;
        let outward = tool_core::outward_name(prefix);
        feature == Feature::Tool
            && (prefix.is_empty() || prefix.len() > MAX_PREFIX || name.starts_with(&outward))
    }

    fn prefix(&self) -> Option<String> {
        let prefix = &self.0.settings.prefix;
        (!prefix.is_empty()).then(|| tool_core::outward_name(prefix))
    }

    fn status(&self) -> SourceStatus {
        let catalogue = self.0.catalogue.borrow().clone();
        let mut status = self.0.status();
        status.n_tools = catalogue.tools.len();
        status.has_lists = catalogue.revision > 0;
        if let (SourceState::Failed(_), Ok(load)) = (&status.state, self.0.load.try_lock()) {
            let now = Instant::now();
            let left = load.retry_at.and_then(|at| at.checked_duration_since(now));
            status.retry_in = left.filter(|left| !left.is_zero());
        }
        status
    }

    fn on_update(&self, tell: OnUpdate) {
        self.0.add_listener(tell);
    }
}
