use std::{sync::Arc, time::Duration};

use tokio::{runtime::Builder, task::JoinSet, time::sleep};
use toolplane::{
    Toolplane,
    manifest::{LoadOptions, Loaded, Syntax, load},
};

use crate::{
    CallResult, SimulationRecord, check,
    client::{self, FRESH, KEPT, ROUTE, STALE, TOOLS, WORKFLOW, client},
    faults::chance,
    record::OperationRecord,
    world::World,
};

/// Result of a simulation.
#[derive(Debug)]
pub struct SimulationReport {
    /// Violations of the checked properties.
    pub violations: Vec<String>,
    /// All events, one on each line.
    pub history: String,
}

/// Number of clients.
const CLIENTS: u64 = 8;
/// Time without faults after which every breaker has let a call through.
const QUIET: Duration = Duration::from_secs(300);

/// Simulates the world of a seed. The same seed gives the same history.
///
/// # Panics
/// If a layer panics.
#[must_use]
pub fn run(seed: u64) -> SimulationReport {
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let runtime = runtime.expect("a runtime of one thread can be started");
    let mut record = runtime.block_on(simulate(seed));
    SimulationReport {
        violations: check(&record),
        history: std::mem::take(&mut record.history),
    }
}

async fn simulate(seed: u64) -> SimulationRecord {
    let world = World::new(seed);
    let variants = [configuration(4), configuration(2)];
    let plane = Toolplane::builder()
        .loaded(&variants[0])
        .executor(Arc::new(world.clone()))
        .seed(seed)
        .build()
        .expect("the configuration is usable");
    let mut clients = JoinSet::new();
    for index in 0..CLIENTS {
        clients.spawn(client(plane.clone(), world.clone(), seed, index));
    }
    // The configuration is reloaded now and then.
    let mut chance = chance(seed, 3_000_000, 0);
    let mut n_reloads = 0;
    while !clients.is_empty() {
        tokio::select! {
            biased;
            ended = clients.join_next() => {
                if let Some(Err(panicked)) = ended {
                    std::panic::resume_unwind(panicked.into_panic());
                }
            }
            () = sleep(Duration::from_millis(chance.u64(500..5_000))) => {
                n_reloads += 1;
                plane.reload(&variants[n_reloads % 2]).expect("the configuration is usable");
                world.record().generation += 1;
            }
        }
    }
    let elapsed = world.now();
    settle(&plane, &world).await;
    let mut record = std::mem::take(&mut *world.record());
    record.elapsed = elapsed;
    record
}

/// Checks recovery: after the end of all faults, as many concurrent calls must succeed as the limits allow. No permit
/// has leaked and no breaker is stuck.
async fn settle(plane: &Toolplane, world: &World) {
    world.calm();
    sleep(QUIET).await;
    for (tool, is_repeatable) in TOOLS.into_iter().chain(KEPT) {
        // The first call may be the probe of a breaker.
        for n_calls in [1, 2] {
            let mut calls = JoinSet::new();
            for _ in 0..n_calls {
                let operation = {
                    let mut record = world.record();
                    record.operations.push(OperationRecord {
                        tool,
                        is_repeatable,
                        is_kept: KEPT.contains(&(tool, is_repeatable)),
                        ..OperationRecord::default()
                    });
                    record.operations.len() - 1
                };
                let (plane, world) = (plane.clone(), world.clone());
                calls.spawn(async move { client::call(&plane, &world, operation, None, None).await });
            }
            for result in calls.join_all().await {
                if result != CallResult::Answered {
                    let leak = format!(
                        "`{tool}` does not recover: {n_calls} calls at once and no faults, {result:?}"
                    );
                    world.record().leaks.push(leak);
                }
            }
        }
    }
}

/// Fallback ladders of the tools.
const LADDERS: [(&str, &str); 5] = [
    ("read", "fallback: put, default: unread"),
    ("pay", "fallback: send"),
    ("send", "default: unsent"),
    ("look", "stale: STALE, default: unseen"),
    ("quote", "stale: STALE"),
];

/// Returns a configuration that allows `at_once` concurrent calls of each tool.
fn configuration(at_once: u32) -> Loaded {
    let tools: String = TOOLS
        .iter()
        .chain(&KEPT)
        .map(|(name, is_repeatable)| {
            let ladder = LADDERS.iter().find(|(tool, _)| tool == name);
            let ladder = ladder.map_or("", |(_, steps)| steps);
            let ladder = ladder.replace("STALE", &format!("{}s", STALE.as_secs()));
            let hedge = if *is_repeatable {
                ", hedge: {after: 300ms, max: 2}"
            } else {
                ""
            };
            if *name == ROUTE {
                return format!("  {name}: {{description: d, route: {{tools: [pay, send]}}}}\n");
            }
            let is_kept = KEPT.iter().any(|(kept, _)| kept == name);
            // A cached tool cannot be declared as not idempotent, so `quote` only lacks the declaration.
            let about = match (is_kept, is_repeatable) {
                (true, true) => format!("idempotent: true, cache: {{ttl: {}s}}", FRESH.as_secs()),
                (true, false) => format!("cache: {{ttl: {}s}}", FRESH.as_secs()),
                (false, _) => format!("idempotent: {is_repeatable}"),
            };
            format!(
                "  {name}: {{description: d, {about}{hedge}, on_failure: [{ladder}], executor: {{kind: sim}}}}\n"
            )
        })
        .collect();
    let (name, [first, second]) = WORKFLOW;
    let workflow = format!(
        "  {first}: {{description: d, executor: {{kind: sim}}}}
  {second}: {{description: d, executor: {{kind: sim}}}}
workflows:
  {name}:
    description: d
    steps:
      - {{tool: {first}, input: {{operation: $input.first}}}}
      - {{tool: {second}, depends_on: [{first}], input: {{operation: $input.second}}}}
"
    );
    let yaml = format!(
        "defaults:
  call_timeout: {}s
  attempt_timeout: 4s
  retry: {{max_attempts: 4}}
  breaker: {{}}
  concurrency: {{per_tool: {{max: {at_once}, queue: 4}}, total: {{max: 6}}}}
  rate_limit: {{per_principal: {{requests: 20, period: 1s, burst: 20}}}}
tools:
{tools}
{workflow}",
        client::CALL_LIMIT.as_secs()
    );
    load(&LoadOptions::new().text("simulation", Syntax::Yaml, yaml)).expect("the configuration is usable")
}
