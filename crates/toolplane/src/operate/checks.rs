//! Periodic health checks of servers and of the health check endpoints of tools.

use std::{
    collections::{HashMap, HashSet},
    error::Error,
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt, future::pending, stream};
use tokio::{
    sync::watch::Sender,
    time::{Instant, sleep_until, timeout},
};
use tool_core::{
    AlertSubject, ErrorKind, Feature, Jitter, Source, Template, Tool, ToolError, format_duration,
};
use tool_manifest::HealthSpec;
use tool_observe::HealthTracker;
use tool_policy::Redactor;
use tool_registry::Registry;

use crate::outgoing::client::Outbound;

/// Maximum number of concurrent checks.
const AT_ONCE: usize = 64;

/// Result of a health check.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CheckOutcome {
    /// Subject of the check.
    pub subject: AlertSubject,
    /// Failure, if the subject is unhealthy.
    pub result: Result<(), ToolError>,
    /// Duration of the check.
    pub took: Duration,
}

/// Periodic health checks.
pub(crate) struct Checks {
    pub(crate) registry: Registry,
    pub(crate) book: Arc<HealthTracker>,
    pub(crate) outbound: Arc<Outbound>,
    pub(crate) spec: Sender<HealthSpec>,
    pub(crate) redactor: Redactor,
}

/// Schedule of one check.
struct Due {
    at: Instant,
    /// Time of the last check.
    since: Instant,
    interval: Duration,
}

impl Due {
    fn after(since: Instant, interval: Duration, jitter: &Jitter) -> Self {
        // Jitter, so that checks do not stay synchronized.
        let at = since + interval - jitter.up_to(interval / 10);
        Self { at, since, interval }
    }
}

/// Subject of a check.
struct Target {
    subject: AlertSubject,
    interval: Duration,
    what: What,
}

enum What {
    Endpoint(Arc<Tool>, Template),
    Source(Arc<dyn Source>),
}

impl Checks {
    /// Checks everything at its configured interval. Never completes.
    pub(crate) async fn run(&self) {
        let jitter = Jitter::default();
        let mut changes = self.registry.changes();
        let mut spec = self.spec.subscribe();
        let mut due: HashMap<AlertSubject, Due> = HashMap::new();
        loop {
            changes.mark_unchanged();
            spec.mark_unchanged();
            let targets = self.targets(|source| source.check_interval());
            let known: HashSet<_> = targets.iter().map(|target| &target.subject).collect();
            due.retain(|subject, _| {
                let stays = known.contains(subject);
                if !stays {
                    self.book.forget_checks(subject);
                }
                stays
            });
            for Target {
                subject, interval, ..
            } in &targets
            {
                if let Some(due) = due.get_mut(subject).filter(|due| due.interval != *interval) {
                    *due = Due::after(due.since, *interval, &jitter);
                }
            }
            let now = Instant::now();
            let is_due = |target: &&Target| due.get(&target.subject).is_none_or(|due| due.at <= now);
            let ready: Vec<_> = targets.iter().filter(is_due).collect();
            stream::iter(&ready)
                .for_each_concurrent(AT_ONCE, async |target| {
                    self.check(target).await;
                })
                .await;
            for target in ready {
                let next = Due::after(now, target.interval, &jitter);
                due.insert(target.subject.clone(), next);
            }
            let next = async {
                match due.values().map(|due| due.at).min() {
                    Some(next) => sleep_until(next).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                () = next => {}
                // There may be new tools.
                _ = changes.changed() => {}
                // Intervals may be shorter now.
                _ = spec.changed() => {}
            }
        }
    }

    /// Applies new settings.
    pub(crate) fn reconfigure(&self, spec: &HealthSpec) {
        self.spec.send_if_modified(|present| {
            let is_other = present != spec;
            present.clone_from(spec);
            is_other
        });
    }

    /// Checks everything once.
    pub(crate) async fn once(&self) -> Vec<CheckOutcome> {
        let targets = self.targets(|_| Some(Duration::ZERO));
        let checked = stream::iter(&targets)
            .map(|target| self.check(target))
            .buffered(AT_ONCE)
            .filter_map(async |checked| checked);
        checked.collect().await
    }

    /// Returns the endpoints that the operator wrote, and the sources that have an `interval`.
    fn targets(&self, interval: impl Fn(&dyn Source) -> Option<Duration>) -> Vec<Target> {
        let sources = self.registry.sources().into_iter().filter_map(|source| {
            Some(Target {
                subject: AlertSubject::Upstream(source.name().into()),
                interval: interval(&*source)?,
                what: What::Source(source),
            })
        });
        let snapshot = self.registry.snapshot();
        let every = self.spec.borrow().interval;
        let endpoints = snapshot.list(Feature::Tool).iter().filter_map(|tool| {
            let descriptor = tool.descriptor();
            let endpoint = descriptor.metadata.health_check_endpoint.as_ref();
            // A URL from a server could make us request anything that we can reach.
            let endpoint = endpoint.filter(|_| descriptor.origin.declarations_count())?;
            Some(Target {
                subject: AlertSubject::Tool(tool.name().clone()),
                interval: every,
                what: What::Endpoint(tool.clone(), Template::parse(endpoint).ok()?),
            })
        });
        sources.chain(endpoints).collect()
    }

    /// Runs one check. Returns `None` if there was nothing to check, for example because another server has replaced
    /// the one checked earlier.
    async fn check(&self, target: &Target) -> Option<CheckOutcome> {
        let start = Instant::now();
        let limit = self.spec.borrow().timeout;
        let asked = async {
            match &target.what {
                What::Endpoint(_, url) => self.outbound.ask(url, limit).await,
                What::Source(source) => source.check().await,
            }
        };
        let result = timeout(limit, asked).await.unwrap_or_else(|_| {
            let message = format!("it did not answer within {}", format_duration(limit));
            Some(Err(ToolError::new(ErrorKind::Timeout, message)))
        });
        let Some(result) = result else {
            self.book.forget_checks(&target.subject);
            return None;
        };
        let took = start.elapsed();
        self.note(target, &result, took);
        let subject = target.subject.clone();
        Some(CheckOutcome {
            subject,
            result,
            took,
        })
    }

    fn note(&self, target: &Target, result: &Result<(), ToolError>, took: Duration) {
        let before = self.book.report(&target.subject).and_then(|report| report.check);
        if let Err(error) = result {
            let cause = error
                .source()
                .map(|cause| format!(": {cause}"))
                .unwrap_or_default();
            let subject = &target.subject;
            let said = format!("{error}{cause}");
            let said = self.redactor.hide_in_text(&said);
            if before.is_none_or(|check| check.n_failures == 0) {
                tracing::warn!(%subject, "a health check failed: {said}");
            } else {
                tracing::debug!(%subject, "a health check failed again: {said}");
            }
        }
        match &target.what {
            What::Endpoint(tool, _) => self.book.record_tool_check(tool, result.is_ok(), took),
            What::Source(source) => {
                let upstream = self.registry.upstream(source.name());
                self.book.record_upstream_check(&upstream, result.is_ok(), took);
            }
        }
    }
}
