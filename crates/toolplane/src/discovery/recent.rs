//! Recent searches, so that a successful call can be attributed to the query that found its tool.

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tool_core::{Caller, Event, Instant, Observe, Outcome, Target};
use tool_search::{SearchRequest, UsageLog};

use super::FoundTools;

/// Maximum number of remembered searches: the oldest is forgotten first.
const MAX_SEARCHES: usize = 256;
/// Time after a search within which a call counts as its result.
const MAX_AGE: Duration = Duration::from_secs(10 * 60);

/// Recent searches of all principals. As an observer of calls, it records in the usage log which queries led to a successful
/// call. Without searches, a call costs one atomic load.
pub(crate) struct RecentSearches {
    usage: Arc<dyn UsageLog>,
    is_used: AtomicBool,
    searches: Mutex<VecDeque<RecentSearch>>,
}

struct RecentSearch {
    principal: Arc<str>,
    tenant: Arc<str>,
    at: Instant,
    queries: Vec<String>,
    /// Found tools, each with the numbers of its queries. A tool is removed when it was called.
    found: Vec<(Arc<str>, Vec<usize>)>,
}

impl RecentSearches {
    pub(crate) fn new(usage: Arc<dyn UsageLog>) -> Self {
        Self {
            usage,
            is_used: AtomicBool::new(false),
            searches: Mutex::default(),
        }
    }

    pub(super) fn usage(&self) -> &dyn UsageLog {
        &*self.usage
    }

    /// Remembers a search. `hide` removes secrets from a query.
    pub(super) fn add(
        &self,
        request: &SearchRequest,
        found: &FoundTools,
        caller: &Caller,
        at: Instant,
        hide: impl Fn(&str) -> String,
    ) {
        if request.queries().is_empty() || found.tools.is_empty() {
            return;
        }
        let tools = found
            .tools
            .iter()
            .map(|found| (found.tool.name().clone(), found.queries.clone()));
        let search = RecentSearch {
            principal: caller.principal.clone(),
            tenant: caller.tenant.clone(),
            at,
            queries: request.queries().iter().map(|query| hide(query)).collect(),
            found: tools.collect(),
        };
        let mut searches = self.searches.lock();
        if searches.len() >= MAX_SEARCHES {
            searches.pop_front();
        }
        searches.push_back(search);
        self.is_used.store(true, Ordering::Release);
    }

    /// Attributes a successful call to the latest search of its principal that found the tool.
    fn called(&self, tool: &Arc<str>, caller: &Caller, now: Instant) {
        let queries: Vec<String> = {
            let mut searches = self.searches.lock();
            while searches
                .front()
                .is_some_and(|search| now.since(search.at) > MAX_AGE)
            {
                searches.pop_front();
            }
            self.is_used.store(!searches.is_empty(), Ordering::Release);
            let of_caller = searches.iter_mut().rev();
            let mut of_caller = of_caller
                .filter(|search| search.principal == caller.principal && search.tenant == caller.tenant);
            let found = of_caller.find_map(|search| {
                let place = search.found.iter().position(|(found, _)| found == tool)?;
                let (_, numbers) = search.found.swap_remove(place);
                let queries = numbers
                    .into_iter()
                    .filter_map(|number| search.queries.get(number).cloned());
                Some(queries.collect())
            });
            found.unwrap_or_default()
        };
        for query in queries {
            self.usage.record(&caller.tenant, tool, &query);
        }
    }
}

impl Observe for RecentSearches {
    fn observe(&self, event: &Event<'_>) {
        if !self.is_used.load(Ordering::Acquire) {
            return;
        }
        let Event::CallFinished { cx, result, .. } = event else {
            return;
        };
        if let (Target::Tool(tool), Some(Ok(Outcome::Reply(reply)))) = (&cx.target, result)
            && !reply.is_error
            && !cx.is_dry_run()
        {
            self.called(tool.name(), &cx.origin.caller, cx.clock.now());
        }
    }
}

impl fmt::Debug for RecentSearches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecentSearches")
            .field("n_searches", &self.searches.lock().len())
            .finish()
    }
}
