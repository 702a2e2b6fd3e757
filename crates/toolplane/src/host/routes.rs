//! Routes: the tools that they choose from, and what is known about them.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tool_core::{
    BoxFuture, Caller, ClientCapabilities, ClientIdentity, Health, HealthReport, Instant, PrepareError, Tool,
};
use tool_policy::{BreakerPeekLayer, Denial};
use tool_registry::Snapshot;
use tool_route::{Obstacle, RouteDefinition, RouteReport, RouteTools, Router, WantedTools};
use tool_settings::suggest;

use crate::{Toolplane, calls::reentry::LateToolplane};

/// Maximum time for which a route waits for the lists of servers, counted from the first start of each.
const WAIT: Duration = Duration::from_secs(5);
/// Maximum number of lists of candidates that are kept.
const MAX_LISTS: usize = 64;

/// Tools of a toolplane, for its routes.
pub(crate) struct RouteHost {
    plane: Arc<LateToolplane>,
    /// Lists of candidates, the last made last.
    lists: Mutex<Vec<CandidateList>>,
}

/// Tools that fit what a route wants, in one revision of a scope.
struct CandidateList {
    wanted: WantedTools,
    scope: u64,
    revision: u64,
    tools: Arc<[Arc<Tool>]>,
}

impl RouteHost {
    pub(crate) fn new(plane: Arc<LateToolplane>) -> Self {
        Self {
            plane,
            lists: Mutex::default(),
        }
    }

    /// Returns the list of a snapshot, if it was made already.
    fn known(&self, wanted: &WantedTools, snapshot: &Snapshot) -> Option<Arc<[Arc<Tool>]>> {
        let lists = self.lists.lock();
        let known = lists.iter().find(|known| {
            known.revision == snapshot.revision()
                && known.scope == snapshot.scope()
                && known.wanted == *wanted
        });
        known.map(|known| known.tools.clone())
    }

    /// Returns the list of a snapshot. One of the same tools as before is that of before.
    fn list(&self, wanted: &WantedTools, snapshot: &Snapshot) -> Arc<[Arc<Tool>]> {
        if let Some(known) = self.known(wanted, snapshot) {
            return known;
        }
        let admitted = snapshot.tools().iter().filter(|tool| wanted.admits(tool));
        let mut tools: Arc<[Arc<Tool>]> = admitted.cloned().collect();
        let mut lists = self.lists.lock();
        let before = lists
            .iter()
            .position(|known| known.scope == snapshot.scope() && known.wanted == *wanted);
        if let Some(before) = before {
            let before = lists.remove(before).tools;
            let is_same = before.len() == tools.len()
                && before
                    .iter()
                    .zip(tools.iter())
                    .all(|(one, other)| Arc::ptr_eq(one, other));
            if is_same {
                tools = before;
            }
        }
        if lists.len() == MAX_LISTS {
            lists.remove(0);
        }
        lists.push(CandidateList {
            wanted: wanted.clone(),
            scope: snapshot.scope(),
            revision: snapshot.revision(),
            tools: tools.clone(),
        });
        tools
    }

    /// Loads the lists of servers that have none yet, and returns the candidates after that.
    async fn load(&self, wanted: &WantedTools, client: &ClientIdentity) -> Arc<[Arc<Tool>]> {
        let Ok(plane) = self.plane.plane() else {
            return Arc::default();
        };
        let snapshot = plane.registry().load_within_for(client, WAIT).await;
        self.list(wanted, &snapshot)
    }
}

impl RouteTools for RouteHost {
    fn find<'a>(
        &'a self,
        wanted: &'a WantedTools,
        _: &'a Caller,
        client: &'a ClientIdentity,
    ) -> BoxFuture<'a, Arc<[Arc<Tool>]>> {
        if let Ok(plane) = self.plane.plane() {
            let registry = &plane.0.registry;
            let snapshot = registry.snapshot_for(client);
            // A list that was made before every server had given its own is made again.
            if let Some(known) = self.known(wanted, &snapshot)
                && registry.unlisted_sources().is_empty()
            {
                return Box::pin(std::future::ready(known));
            }
        }
        Box::pin(self.load(wanted, client))
    }

    fn obstacle(&self, tool: &Tool, caller: &Caller, now: Instant) -> Option<Obstacle> {
        let Ok(plane) = self.plane.plane() else {
            return Some(out_of_service("the gateway has ended", None));
        };
        match plane.0.rules.load().admit(tool, caller) {
            Ok(()) => {}
            Err(Denial::Disabled { disabled, .. }) => {
                return Some(out_of_service(&format!("it is switched off: {disabled}"), None));
            }
            Err(_) => return Some(Obstacle::Forbidden),
        }
        if let Some(disabled) = tool.state().disabled()
            && now < disabled.until
        {
            let reason = format!("it is disabled: {}", disabled.reason);
            return Some(out_of_service(&reason, Some(disabled.until.since(now))));
        }
        let (scope, open) = BreakerPeekLayer::peek(tool, now).err()?;
        let whose = match scope {
            tool_core::Scope::Upstream => "the circuit breaker of its server is open",
            _ => "its circuit breaker is open",
        };
        Some(out_of_service(whose, open.retry_after))
    }

    fn health(&self) -> &dyn Health {
        self
    }
}

fn out_of_service(reason: &str, retry_after: Option<Duration>) -> Obstacle {
    Obstacle::OutOfService {
        reason: reason.to_owned(),
        retry_after,
    }
}

impl Health for RouteHost {
    fn tool(&self, name: &str) -> HealthReport {
        let plane = self.plane.plane();
        plane.map_or(HealthReport::UNKNOWN, |plane| {
            Health::tool(&*plane.0.watch.book, name)
        })
    }

    fn upstream(&self, name: &str) -> HealthReport {
        let plane = self.plane.plane();
        plane.map_or(HealthReport::UNKNOWN, |plane| {
            Health::upstream(&*plane.0.watch.book, name)
        })
    }
}

impl Toolplane {
    /// Chooses a tool as a route would, and tells the scores of all candidates, those included that the caller may not call. Calls
    /// nothing. Waits up to five seconds for servers that have given no list yet.
    ///
    /// # Cancellation
    /// Dropping the future ends the choice. Servers that are starting continue to start.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    ///
    /// # Examples
    /// ```
    /// use toolplane::{Toolplane, route::RouteDefinition};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let plane = Toolplane::from_yaml(
    ///     "tools: {exa: {description: Searches., capabilities: [search], executor: {kind: mock, result: 1}}}",
    /// )?;
    /// let report = plane.route(RouteDefinition::for_capability("search"), &plane.local_caller()).await;
    /// assert_eq!(report.tool.as_deref(), Some("exa"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn route(&self, definition: RouteDefinition, caller: &Caller) -> RouteReport {
        let plane = Arc::new(LateToolplane::default());
        plane.open(self.clone());
        let router = Router::new(definition, Arc::new(RouteHost::new(plane)));
        let client = ClientIdentity::new(None, None, ClientCapabilities::default(), caller);
        router.report(caller, &client, &*self.0.clock).await
    }

    /// Checks what all routes name: returns each capability, tool and label that nothing has, with the name of the route. Without
    /// the lists of all servers, only what no server can have is reported.
    #[must_use]
    pub fn route_problems(&self) -> Vec<(Arc<str>, PrepareError)> {
        let snapshot = self.0.registry.snapshot();
        let mut problems = Vec::new();
        for tool in snapshot.tools() {
            if let Some(route) = RouteDefinition::of(tool.descriptor()) {
                let found = self.check_route(&route, &snapshot).into_iter();
                problems.extend(found.map(|problem| (tool.name().clone(), problem)));
            }
        }
        problems
    }

    fn check_route(&self, route: &RouteDefinition, snapshot: &Snapshot) -> Vec<PrepareError> {
        let mut problems = Vec::new();
        let candidates: Vec<_> = snapshot
            .tools()
            .iter()
            .filter(|tool| route.wanted.admits(tool))
            .collect();
        // Tools of servers have no capabilities, so that their lists do not matter here.
        if let Some(capability) = &route.wanted.capability {
            let has = |tool: &&Arc<Tool>| {
                tool.descriptor()
                    .metadata
                    .capabilities
                    .iter()
                    .any(|known| **known == **capability)
            };
            if !snapshot.tools().iter().any(|tool| has(&tool)) {
                let message = format!("no tool has the capability `{}`", suggest::shown(capability));
                let known = snapshot
                    .tools()
                    .iter()
                    .flat_map(|tool| &tool.descriptor().metadata.capabilities);
                let mut known: Vec<_> = known.map(String::as_str).collect();
                known.sort_unstable();
                known.dedup();
                let problem = PrepareError::at("/capability", message);
                problems.push(match suggest::nearest(capability, &known) {
                    Some(near) => problem.with_hint(format!("did you mean `{near}`?")),
                    None => problem.with_hint("write it into the `capabilities` of tools"),
                });
            } else if !candidates.iter().any(has) {
                let message = format!(
                    "no tool with the capability `{}` has these tags",
                    suggest::shown(capability)
                );
                problems.push(PrepareError::at("/tags", message));
            }
        }
        if !self.0.registry.unlisted_sources().is_empty() {
            return problems;
        }
        let names = || candidates.iter().flat_map(|tool| tool.names());
        for pattern in &route.wanted.tools {
            if !names().any(|name| pattern.matches(name)) {
                let message = format!("no tool is called `{}`", suggest::shown(pattern.as_str()));
                problems.push(PrepareError::at("/tools", message));
            }
        }
        for named in route.named_candidates() {
            if !names().any(|name| name == named) {
                let shown = suggest::shown(named);
                let known: Vec<_> = names().collect();
                let at = tool_settings::pointer("/arguments", named);
                let problem = PrepareError::at(at, format!("`{shown}` is no candidate of the route"));
                problems.push(match suggest::nearest(named, &known) {
                    Some(near) => problem.with_hint(format!("did you mean `{near}`?")),
                    None => problem.with_hint("remove it, or give the tool the capability"),
                });
            }
        }
        problems
    }
}
