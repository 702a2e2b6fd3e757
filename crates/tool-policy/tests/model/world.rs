use std::{
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, SystemTime},
};

use raw_json::RawJson;
use serde_json::json;
use shuttle::future::{block_on, yield_now};
use tool_core::{
    CallContext, Clock, ErrorKind, Instant, Invoke, Jitter, Layers, Outcome, Reply, Tool, ToolError,
    UpstreamState,
};
use tool_testkit::{ScriptedExecutor, TestTool, call};

use crate::breaker::{
    BreakerLayer, BreakerPeekLayer, BreakerScope, BreakerSettings, Breakers, Circuit, CircuitOpen,
};

pub(crate) static SETTINGS: LazyLock<BreakerSettings> = LazyLock::new(|| {
    BreakerSettings::default()
        .with_per(BreakerScope::Upstream)
        .with_max_failures(5)
        .with_failure_percent(50)
        .with_min_calls(10)
        .with_window(Duration::from_secs(30))
        .with_pause(Duration::from_secs(1))
        .with_max_pause(Duration::from_secs(60))
});

/// Tools with breakers, and the history of their calls. Several tools share an upstream.
pub(crate) struct World {
    tools: Vec<Arc<Tool>>,
    upstream: Option<Arc<UpstreamState>>,
    clock: Arc<Hands>,
    seen: Arc<Seen>,
}

/// Fate of a call that passes the breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Answers,
    Fails,
    /// It is sent and never answered.
    Hangs,
}

/// History of the calls. It does not use the model's own atomics: reading it is not a step of the calls.
#[derive(Default)]
struct Seen {
    n_running: AtomicUsize,
    is_answered: AtomicBool,
    has_failed: AtomicBool,
}

/// Backend of the tool for one call.
struct Runner {
    seen: Arc<Seen>,
    fate: Fate,
}

/// Clock that is set by hand, in milliseconds.
#[derive(Default)]
struct Hands(AtomicU64);

/// A running call. Dropping it ends it, also when the call is cancelled.
struct Running(Arc<Seen>);

/// Returns a time of the world, in seconds.
pub(crate) fn at(seconds: u64) -> Instant {
    Instant::since_start(Duration::from_secs(seconds))
}

impl World {
    /// Creates a world whose breaker is open: that of the tool, or of the upstream.
    pub(crate) fn opened_breaker(n_tools: usize) -> Self {
        let upstream = (n_tools > 1).then(|| Arc::new(UpstreamState::new("files")));
        let tools = (0..n_tools).map(|number| {
            let mut tool = TestTool::new(&format!("t{number}"));
            tool.settings.set(Breakers::new(
                *SETTINGS,
                BreakerSettings::default().with_per(BreakerScope::Upstream),
            ));
            tool.upstream = upstream.clone();
            tool.build(ScriptedExecutor::new([]))
        });
        let world = Self {
            tools: tools.collect(),
            upstream,
            clock: Arc::default(),
            seen: Arc::default(),
        };
        for number in 0..5 {
            world.peek().expect("five failures open it, not fewer");
            assert!(!block_on(world.call(number, Fate::Fails)));
        }
        world.peek().expect_err("it is open");
        world.seen.has_failed.store(false, Relaxed);
        world
    }

    /// Calls the tool of this number. Returns `true` if the call was answered.
    ///
    /// Until a tool is known to work again, this must be the only call that passes.
    pub(crate) fn call(&self, number: usize, fate: Fate) -> impl Future<Output = bool> + Send + 'static {
        let tool = self.tools[number % self.tools.len()].clone();
        let mut cx = call(tool, json!({}), self.clock.clone());
        let seen = self.seen.clone();
        let breaker = BreakerLayer::with_jitter(Jitter::seeded(1));
        let stack = Layers::outermost(BreakerPeekLayer::for_breaker(&breaker))
            .then(breaker)
            .around(Runner { seen, fate });
        async move { stack.invoke(&mut cx).await.is_ok() }
    }

    /// Checks that calls would pass the breaker: that of the upstream, or of the only tool.
    pub(crate) fn peek(&self) -> Result<(), CircuitOpen> {
        self.circuit().peek(self.clock.now())
    }

    fn circuit(&self) -> Arc<Circuit> {
        match &self.upstream {
            Some(upstream) => upstream.get_or_init(Circuit::default),
            None => self.tools[0].state().get_or_init(Circuit::default),
        }
    }

    pub(crate) fn pass(&self, time: Duration) {
        self.clock.0.fetch_add(time.as_millis() as u64, Relaxed);
    }

    pub(crate) fn n_running(&self) -> usize {
        self.seen.n_running.load(Relaxed)
    }

    /// Returns `true` if a call failed before any was answered.
    pub(crate) fn has_failed(&self) -> bool {
        self.seen.has_failed.load(Relaxed)
    }
}

impl Invoke for Runner {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let _running = Running::begin(&self.seen);
        cx.dispatch().sent();
        yield_now().await;
        match self.fate {
            Fate::Answers => {
                cx.dispatch().answered();
                self.seen.is_answered.store(true, Relaxed);
                Ok(Reply::value(RawJson::object()).into())
            }
            Fate::Fails => {
                let is_first = !self.seen.is_answered.load(Relaxed);
                self.seen.has_failed.fetch_or(is_first, Relaxed);
                Err(ToolError::new(ErrorKind::Unavailable, "it fails"))
            }
            Fate::Hangs => std::future::pending().await,
        }
    }
}

impl Running {
    fn begin(seen: &Arc<Seen>) -> Self {
        let n_others = seen.n_running.fetch_add(1, Relaxed);
        let is_well = seen.is_answered.load(Relaxed);
        assert!(n_others == 0 || is_well, "there are two probes");
        Self(seen.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.n_running.fetch_sub(1, Relaxed);
    }
}

impl Clock for Hands {
    fn now(&self) -> Instant {
        Instant::since_start(Duration::from_millis(self.0.load(Relaxed)))
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}
