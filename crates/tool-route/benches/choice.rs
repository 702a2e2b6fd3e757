//! Choice of a tool among 1,000 candidates: half of them were called by routes before, and all have figures of health.

use std::{hint::black_box, sync::Arc, time::Duration};

use criterion::{Criterion, criterion_group, criterion_main};
use tool_core::{BoxFuture, Caller, ClientIdentity, Clock, Health, HealthReport, Instant, SystemClock, Tool};
use tool_route::{Obstacle, RouteDefinition, RoutePriority, RouteTools, Router, WantedTools};
use tool_testkit::{ScriptedExecutor, TestTool};

const N_CANDIDATES: usize = 1000;

struct Plane(Arc<[Arc<Tool>]>);

impl RouteTools for Plane {
    fn find<'a>(
        &'a self,
        _: &'a WantedTools,
        _: &'a Caller,
        _: &'a ClientIdentity,
    ) -> BoxFuture<'a, Arc<[Arc<Tool>]>> {
        Box::pin(async { self.0.clone() })
    }

    fn obstacle(&self, _: &Tool, _: &Caller, _: Instant) -> Option<Obstacle> {
        None
    }

    fn health(&self) -> &dyn Health {
        self
    }
}

impl Health for Plane {
    fn tool(&self, name: &str) -> HealthReport {
        let number: u64 = name.trim_start_matches("tool_").parse().unwrap_or_default();
        let mut report = HealthReport::UNKNOWN;
        (report.n_calls, report.n_failures) = (100, number % 20);
        report.mean = Duration::from_millis(50 + number);
        report.with_status()
    }

    fn upstream(&self, _: &str) -> HealthReport {
        HealthReport::UNKNOWN
    }
}

fn choice(c: &mut Criterion) {
    let tools = (0..N_CANDIDATES).map(|number| {
        let mut tool = TestTool::new(&format!("tool_{number}"));
        let mut metadata = tool_core::Metadata::default();
        metadata.capabilities = vec!["search".to_owned()];
        metadata.cost_per_call = Some(number as f64 / 1e6);
        tool = tool.metadata(metadata);
        tool.build(ScriptedExecutor::new([]))
    });
    let tools: Arc<[Arc<Tool>]> = tools.collect();
    let mut definition = RouteDefinition::for_capability("search");
    definition.priority = RoutePriority::of(true, true, true);
    let router = Router::new(definition, Arc::new(Plane(tools.clone())));
    let clock = SystemClock::new();
    let caller = Caller::local();
    for tool in tools.iter().step_by(2) {
        router.record(tool, clock.now(), Duration::from_millis(100), false);
    }
    c.bench_function("choice/1000 candidates", |b| {
        b.iter(|| black_box(router.choose(&tools, &caller, clock.now())));
    });
}

criterion_group!(benches, choice);
criterion_main!(benches);
