//! Single flight: identical calls run once, and all waiters get the result.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use raw_json::RawJson;
use serde_json::json;
use shuttle::future::{block_on, spawn, yield_now};
use tokio::sync::oneshot;
use tool_core::{ErrorKind, Instant, Reply, ToolError};
use tool_runtime::CacheScope;
use tool_runtime::TokioClock;
use tool_testkit::{ScriptedExecutor, TestTool, call};

use crate::{
    many_orders,
    response_cache::{CacheKey, ResponseCache},
    single_flight::{FlightResult, Join, Leader, SingleFlight},
};

/// A tool whose results are shared, and the number of its executions.
#[derive(Clone)]
struct World {
    flights: Arc<SingleFlight>,
    responses: Arc<ResponseCache>,
    key: CacheKey,
    fails: bool,
    n_begun: Arc<AtomicUsize>,
    n_done: Arc<AtomicUsize>,
}

impl World {
    fn new(fails: bool) -> Self {
        let tool = TestTool::new("t").build(ScriptedExecutor::new([]));
        let cx = call(tool, json!({}), Arc::new(TokioClock::new()));
        Self {
            flights: Arc::default(),
            responses: Arc::new(ResponseCache::new(1 << 20)),
            key: CacheKey::for_call(&cx, CacheScope::Principal),
            fails,
            n_begun: Arc::default(),
            n_done: Arc::default(),
        }
    }

    /// Makes a call as the layer does. Returns `true` if it was answered.
    async fn call(self) -> bool {
        let join = self
            .flights
            .join(&self.key, None, || self.responses.get(&self.key));
        match join {
            Join::Cached(cached) => cached.age(Instant::default()).is_zero(),
            Join::Follower(_waiter, mut result, _) => {
                let result = result.wait_for(Option::is_some).await;
                matches!(result.as_deref(), Ok(Some(FlightResult::Shared(Ok(_)))))
            }
            Join::Leader(_waiter, leader) => {
                let (sender, own) = oneshot::channel();
                self.spawn(leader, Some(sender));
                own.await
                    .expect("the work is not given up while it is waited for")
            }
        }
    }

    /// Starts an execution without a waiter.
    fn refresh(&self) {
        if let Some(leader) = self.flights.lead_detached(&self.key) {
            self.spawn(leader, None);
        }
    }

    fn spawn(&self, leader: Leader, own: Option<oneshot::Sender<bool>>) {
        let world = self.clone();
        leader.spawn(|completion, _| async move {
            world.n_begun.fetch_add(1, Relaxed);
            yield_now().await;
            let result = world.result();
            let is_answered = result.is_ok();
            world.n_done.fetch_add(1, Relaxed);
            completion.complete(FlightResult::Shared(result));
            if let Some(own) = own {
                // The call may have been cancelled.
                let _ = own.send(is_answered);
            }
        });
    }

    fn result(&self) -> Result<Reply, ToolError> {
        if self.fails {
            return Err(ToolError::new(ErrorKind::Unavailable, "it fails"));
        }
        let reply = Reply::value(RawJson::object());
        self.responses
            .insert(self.key.clone(), &reply, Instant::default());
        Ok(reply)
    }

    /// Makes this many calls at once, of which the first ones are cancelled at some time. All others get the result
    /// of the work.
    fn crowd(&self, n_calls: usize, n_given_up: usize) {
        let calls: Vec<_> = (0..n_calls).map(|_| spawn(self.clone().call())).collect();
        for given_up in &calls[..n_given_up] {
            given_up.abort();
        }
        let ends: Vec<_> = calls.into_iter().map(block_on).collect();
        for end in &ends[n_given_up..] {
            assert_eq!(*end.as_ref().expect("nobody gives it up"), !self.fails);
        }
    }
}

/// Calls before, during and after the execution: it happens once.
fn once(n_calls: usize) {
    let world = World::new(false);
    world.crowd(n_calls, 0);
    assert_eq!((world.n_begun.load(Relaxed), world.flights.n_in_flight()), (1, 0));
}

/// Calls of which some are cancelled: the execution continues for the others, and ends without them.
fn given_up(n_calls: usize, n_given_up: usize) {
    let world = World::new(false);
    world.crowd(n_calls, n_given_up);
    assert_eq!(world.flights.n_in_flight(), 0);
    assert!(n_given_up == n_calls || world.n_done.load(Relaxed) >= 1);
}

#[test]
fn thousands_of_orders_of_two_calls_make_one_or_answer_the_other() {
    many_orders(|| once(2));
    many_orders(|| given_up(2, 1));
    many_orders(|| given_up(2, 2));
}

#[test]
fn thousands_of_orders_of_six_calls_make_one_and_lose_none() {
    many_orders(|| once(6));
    for n_given_up in [1, 3, 5, 6] {
        many_orders(move || given_up(6, n_given_up));
    }
}

#[test]
fn a_failure_is_for_all_who_waited_and_for_nobody_after() {
    many_orders(|| {
        let world = World::new(true);
        world.crowd(5, 0);
        let n_begun = world.n_begun.load(Relaxed);
        assert_eq!(world.n_done.load(Relaxed), n_begun);
        world.crowd(1, 0);
        assert_eq!(world.n_begun.load(Relaxed), n_begun + 1, "it is not kept");
    });
}

#[test]
fn what_is_fetched_for_its_own_sake_is_not_given_up_in_any_order() {
    many_orders(|| {
        let world = World::new(false);
        world.refresh();
        world.crowd(4, 4);
        while world.flights.n_in_flight() > 0 {
            block_on(yield_now());
        }
        assert_eq!((world.n_begun.load(Relaxed), world.n_done.load(Relaxed)), (1, 1));
    });
}
