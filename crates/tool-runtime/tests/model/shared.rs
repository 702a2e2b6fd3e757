//! Calls that share a flight: made once, and for all who wait.

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
use tool_testkit::{Script, TestTool, call};

use crate::{
    many_orders,
    response_cache::{Answers, Key},
    single_flight::{Boarding, Flights, Landed, Takeoff},
};

/// A tool whose answers are shared, and how often it was called.
#[derive(Clone)]
struct World {
    flights: Arc<Flights>,
    answers: Arc<Answers>,
    key: Key,
    fails: bool,
    n_begun: Arc<AtomicUsize>,
    n_done: Arc<AtomicUsize>,
}

impl World {
    fn new(fails: bool) -> Self {
        let tool = TestTool::new("t").build(Script::new([]));
        let cx = call(tool, json!({}), Arc::new(TokioClock::new()));
        Self {
            flights: Arc::default(),
            answers: Arc::new(Answers::new(1 << 20)),
            key: Key::of(&cx, CacheScope::Principal),
            fails,
            n_begun: Arc::default(),
            n_done: Arc::default(),
        }
    }

    /// A call as the layer makes it; the output tells whether it was answered.
    async fn call(self) -> bool {
        let boarding = self
            .flights
            .board(&self.key, None, || self.answers.find(&self.key));
        match boarding {
            Boarding::Kept(answer) => answer.age(Instant::default()).is_zero(),
            Boarding::Joined(_seat, mut landed, _) => {
                let landed = landed.wait_for(Option::is_some).await;
                matches!(landed.as_deref(), Ok(Some(Landed::Result(Ok(_)))))
            }
            Boarding::New(_seat, takeoff) => {
                let (sender, own) = oneshot::channel();
                self.begin(takeoff, Some(sender));
                own.await
                    .expect("the work is not given up while it is waited for")
            }
        }
    }

    /// Has the answer fetched though nobody waits for it.
    fn refresh(&self) {
        if let Some(takeoff) = self.flights.keep_up(&self.key) {
            self.begin(takeoff, None);
        }
    }

    fn begin(&self, takeoff: Takeoff, own: Option<oneshot::Sender<bool>>) {
        let world = self.clone();
        takeoff.begin(|landing, _| async move {
            world.n_begun.fetch_add(1, Relaxed);
            yield_now().await;
            let result = world.result();
            let is_answered = result.is_ok();
            world.n_done.fetch_add(1, Relaxed);
            landing.land(Landed::Result(result));
            if let Some(own) = own {
                // It may have been given up.
                let _ = own.send(is_answered);
            }
        });
    }

    fn result(&self) -> Result<Reply, ToolError> {
        if self.fails {
            return Err(ToolError::new(ErrorKind::Unavailable, "it fails"));
        }
        let reply = Reply::value(RawJson::object());
        self.answers.keep(self.key.clone(), &reply, Instant::default());
        Ok(reply)
    }

    /// So many calls at once, of which the first ones are given up at some time. All others have what came of the work.
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

/// Calls that are made once, though they come before, while and after the work is done.
fn once(n_calls: usize) {
    let world = World::new(false);
    world.crowd(n_calls, 0);
    assert_eq!((world.n_begun.load(Relaxed), world.flights.n_aloft()), (1, 0));
}

/// Calls of which some are given up: the work goes on for the others, and for nobody it does not.
fn given_up(n_calls: usize, n_given_up: usize) {
    let world = World::new(false);
    world.crowd(n_calls, n_given_up);
    assert_eq!(world.flights.n_aloft(), 0);
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
        while world.flights.n_aloft() > 0 {
            block_on(yield_now());
        }
        assert_eq!((world.n_begun.load(Relaxed), world.n_done.load(Relaxed)), (1, 1));
    });
}
