//! Candidates of a route, and the port to the tools that they are.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tool_core::{BoxFuture, Caller, ClientIdentity, Health, Instant, LatencyClass, Tool};

use crate::{
    RouteDefinition, WantedTools,
    figures::RouteFigures,
    score::{HealthFigures, Scored},
};

/// Age from which figures of health are read again.
const HEALTH_AGE: Duration = Duration::from_secs(1);
/// Index of no candidate.
const NONE: usize = usize::MAX;

/// Port to the tools that routes choose from.
pub trait RouteTools: Send + Sync {
    /// Returns the tools that [`WantedTools::admits`] admits, among those that a client sees. The same list is returned until
    /// something changes. May start servers first.
    fn find<'a>(
        &'a self,
        wanted: &'a WantedTools,
        caller: &'a Caller,
        client: &'a ClientIdentity,
    ) -> BoxFuture<'a, Arc<[Arc<Tool>]>>;

    /// Returns the reason for which a caller cannot call a tool now, if there is one.
    fn obstacle(&self, tool: &Tool, caller: &Caller, now: Instant) -> Option<Obstacle>;

    /// Returns the source of figures of health.
    fn health(&self) -> &dyn Health;
}

/// Reason for which a tool cannot be called.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Obstacle {
    /// The caller may not call it, and does not learn that it exists.
    Forbidden,
    /// It is out of service, as by an open circuit breaker.
    OutOfService {
        /// Reason: a fragment that continues a sentence about the tool.
        reason: String,
        /// Time after which it may be in service again, if it is known.
        retry_after: Option<Duration>,
    },
}

/// A tool that a route may choose.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) tool: Arc<Tool>,
    pub(crate) figures: Arc<RouteFigures>,
    /// Number of requirements that it meets.
    pub(crate) n_met: u32,
    /// Declared cost of a call, in US dollars.
    pub(crate) cost: Option<f64>,
    /// Declared latency.
    pub(crate) latency: Option<LatencyClass>,
    /// Declared share of successful calls, in percent.
    pub(crate) sla: Option<f64>,
    pub(crate) awaits_acceptance: bool,
}

/// All candidates of a route, as long as the list of tools does not change.
pub(crate) struct Candidates {
    /// List that they were made from.
    pub(crate) tools: Arc<[Arc<Tool>]>,
    pub(crate) entries: Vec<Candidate>,
    health: Mutex<KnownHealth>,
    /// Index of the candidate that the last calls went to.
    leader: AtomicUsize,
}

/// Figures of health of all candidates, and when they were read.
struct KnownHealth {
    read_at: Option<Instant>,
    figures: Arc<[HealthFigures]>,
}

impl Candidate {
    fn new(route: &RouteDefinition, tool: &Arc<Tool>) -> Self {
        let descriptor = tool.descriptor();
        let metadata = &descriptor.metadata;
        let is_met = |requirement: &&String| {
            metadata.capabilities.contains(requirement) || metadata.tags.contains(requirement)
        };
        // A server that describes its own tools says nothing that counts.
        let counts = descriptor.origin.declarations_count();
        let n_met = route.requirements.iter().filter(is_met).count();
        Self {
            tool: tool.clone(),
            figures: RouteFigures::of(tool),
            n_met: u32::try_from(n_met).unwrap_or(u32::MAX),
            cost: metadata.cost_per_call.filter(|_| counts),
            latency: metadata.latency.filter(|_| counts),
            sla: metadata.sla.filter(|_| counts),
            awaits_acceptance: descriptor.origin.awaits_acceptance(),
        }
    }
}

impl Candidates {
    /// Creates the candidates from a list of tools. `leader` is the name of the leading one before.
    pub(crate) fn new(route: &RouteDefinition, tools: &Arc<[Arc<Tool>]>, leader: Option<&str>) -> Self {
        let entries: Vec<_> = tools.iter().map(|tool| Candidate::new(route, tool)).collect();
        let leader = entries
            .iter()
            .position(|entry| Some(&**entry.tool.name()) == leader);
        Self {
            tools: tools.clone(),
            health: Mutex::new(KnownHealth {
                read_at: None,
                figures: Arc::default(),
            }),
            leader: AtomicUsize::new(leader.unwrap_or(NONE)),
            entries,
        }
    }

    pub(crate) fn leader(&self) -> Option<usize> {
        let leader = self.leader.load(Ordering::Relaxed);
        (leader < self.entries.len()).then_some(leader)
    }

    pub(crate) fn set_leader(&self, leader: usize) {
        self.leader.store(leader, Ordering::Relaxed);
    }

    /// Returns the figures of health. Of the calls that find them older than [`HEALTH_AGE`], the first reads them again; the
    /// others do not wait for it.
    pub(crate) fn health(&self, health: &dyn Health, now: Instant) -> Arc<[HealthFigures]> {
        let read = || {
            let names = self.entries.iter().map(|entry| entry.tool.name());
            let figures = names.map(|name| HealthFigures::new(&health.tool(name)));
            figures.collect::<Arc<[_]>>()
        };
        {
            let mut known = self.health.lock();
            match known.read_at {
                Some(read_at) if now.since(read_at) < HEALTH_AGE => return known.figures.clone(),
                Some(_) => known.read_at = Some(now),
                None => {
                    known.read_at = Some(now);
                    known.figures = read();
                    return known.figures.clone();
                }
            }
        }
        let figures = read();
        self.health.lock().figures = figures.clone();
        figures
    }

    /// Returns a candidate with its figures.
    pub(crate) fn scored<'a>(
        &'a self,
        index: usize,
        health: &'a [HealthFigures],
        now: Instant,
    ) -> Scored<'a> {
        Scored {
            candidate: &self.entries[index],
            health: &health[index],
            now,
        }
    }
}
