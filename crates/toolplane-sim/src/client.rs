use std::time::Duration;

use tokio::time::{sleep, timeout};
use toolplane::{
    CallRequest, RawJson, Toolplane,
    core::{Degraded, DegradedStep, ErrorKind, Outcome},
};

use crate::{
    faults::chance,
    record::{
        CallRecord, CallResult, FlowRecord, FlowResult, OperationRecord, ReceivedAnswer, ReplyFreshness,
    },
    world::World,
};

/// Tools without a cache, and whether they are repeatable: twice has the effect of once.
pub(crate) const TOOLS: [(&str, bool); 5] = [
    ("read", true),
    ("put", true),
    ("pay", false),
    ("send", false),
    (ROUTE, false),
];
/// Route between `pay` and `send`: for the check, a call of it is one operation, whichever tool does it.
pub(crate) const ROUTE: &str = "choose";
/// Workflow of two steps, and their tools, which nothing else calls.
pub(crate) const WORKFLOW: (&str, [&str; 2]) = ("travel", ["book", "ticket"]);

/// Tools with a cache, and whether they may run twice for a call.
pub(crate) const KEPT: [(&str, bool); 2] = [("look", true), ("quote", false)];
/// Number of different questions to each cached tool.
pub(crate) const QUESTIONS: usize = 3;
/// Time to live of a cached answer.
pub(crate) const FRESH: Duration = Duration::from_secs(1);
/// Maximum age of a stale answer.
pub(crate) const STALE: Duration = Duration::from_secs(6);

/// `_meta` key that marks a cached reply.
const CACHE: &str = "dev.toolplane/cache";

/// Time limit of a call without its own deadline.
pub(crate) const CALL_LIMIT: Duration = Duration::from_secs(20);

/// Number of operations of each client.
const OPERATIONS: usize = 12;
/// Maximum number of calls of an operation with an idempotency key.
const TRIES: usize = 3;

/// A client: calls one tool after another, and sometimes gives up early.
pub(crate) async fn client(plane: Toolplane, world: World, seed: u64, client: u64) {
    let mut chance = chance(seed, 1_000_000 + client, 0);
    for _ in 0..OPERATIONS {
        sleep(Duration::from_millis(chance.u64(0..1_500))).await;
        let which = chance.usize(0..TOOLS.len() + KEPT.len() + 1);
        if which == TOOLS.len() + KEPT.len() {
            let patience = (chance.u32(0..4) == 0).then(|| Duration::from_millis(chance.u64(1..3_000)));
            travel(&plane, &world, patience).await;
            continue;
        }
        let has_key = which < TOOLS.len() && chance.u32(0..3) == 0;
        let operation = match TOOLS.get(which) {
            Some((tool, is_repeatable)) => {
                let mut record = world.record();
                record.operations.push(OperationRecord {
                    tool,
                    is_repeatable: *is_repeatable,
                    has_key,
                    ..OperationRecord::default()
                });
                record.operations.len() - 1
            }
            // The questions are in the record from the start.
            None => (which - TOOLS.len()) * QUESTIONS + chance.usize(0..QUESTIONS),
        };
        for _ in 0..if has_key { TRIES } else { 1 } {
            let deadline = (chance.u32(0..3) == 0).then(|| Duration::from_millis(chance.u64(5..8_000)));
            let patience = (chance.u32(0..6) == 0).then(|| Duration::from_millis(chance.u64(1..3_000)));
            let result = call(&plane, &world, operation, deadline, patience).await;
            if result.says_done() {
                break;
            }
            sleep(Duration::from_millis(chance.u64(0..2_000))).await;
        }
    }
}

/// Calls the workflow and records the call.
async fn travel(plane: &Toolplane, world: &World, patience: Option<Duration>) {
    let began = world.now();
    let (workflow, tools) = WORKFLOW;
    let (index, steps) = {
        let mut record = world.record();
        let steps = tools.map(|tool| {
            record.operations.push(OperationRecord {
                tool,
                ..OperationRecord::default()
            });
            record.operations.len() - 1
        });
        record.line(began, steps[0], "begins a workflow");
        record.flows.push(FlowRecord {
            steps,
            began,
            limit: CALL_LIMIT,
            ended: None,
        });
        (record.flows.len() - 1, steps)
    };
    let arguments = format!("{{\"first\":{},\"second\":{}}}", steps[0], steps[1]);
    let request = CallRequest::new(workflow).json(arguments).expect("an object");
    let answered = match patience {
        Some(patience) => timeout(patience, plane.call(request)).await.ok(),
        None => Some(plane.call(request).await),
    };
    let result = match answered {
        Some(Ok(_)) => FlowResult::Completed,
        Some(Err(error)) => FlowResult::Failed {
            kind: error.kind(),
            may_have_run: error.may_have_run(),
        },
        None => FlowResult::Withdrawn,
    };
    let at = world.now();
    let mut record = world.record();
    record.line(at, steps[0], &format!("ends the workflow: {result:?}"));
    record.flows[index].ended = Some((at, result));
}

/// Makes one call and records it.
pub(crate) async fn call(
    plane: &Toolplane,
    world: &World,
    operation: usize,
    deadline: Option<Duration>,
    patience: Option<Duration>,
) -> CallResult {
    let began = world.now();
    let (tool, has_key, index) = {
        let mut record = world.record();
        record.line(began, operation, "is called");
        let generation = record.generation;
        let known = &mut record.operations[operation];
        known.invocations.push(CallRecord {
            began,
            limit: deadline.map_or(CALL_LIMIT, |deadline| deadline.min(CALL_LIMIT)),
            generation,
            ended: None,
            given: None,
        });
        (known.tool, known.has_key, known.invocations.len() - 1)
    };
    let mut request = CallRequest::new(tool)
        .json(format!("{{\"operation\":{operation}}}"))
        .expect("an object");
    if let Some(deadline) = deadline {
        request = request.deadline(deadline);
    }
    if has_key {
        request = request.idempotency_key(format!("operation-{operation}"));
    }
    let answered = match patience {
        Some(patience) => timeout(patience, plane.call(request)).await.ok(),
        None => Some(plane.call(request).await),
    };
    let (result, given) = match answered {
        Some(Ok(outcome)) => read(&outcome),
        Some(Err(error)) => (CallResult::Failed(error.kind()), None),
        None => (CallResult::Withdrawn, None),
    };
    let at = world.now();
    let mut record = world.record();
    record.line(at, operation, &format!("ends: {result:?}"));
    let invocation = &mut record.operations[operation].invocations[index];
    invocation.ended = Some((at, result));
    invocation.given = given;
    result
}

/// Reads the result of a call from its reply, and the answer of the world in it.
fn read(outcome: &Outcome) -> (CallResult, Option<ReceivedAnswer>) {
    let Outcome::Reply(reply) = outcome else {
        return (CallResult::Answered, None);
    };
    let said = |key| reply.meta().iter().find(|(known, _)| *known == key);
    let age = |said: &RawJson| said.get("age_ms")?.to().ok().map(Duration::from_millis);
    let degraded = said(Degraded::META_KEY).map(|(_, said)| innermost(said));
    let step = degraded.as_ref().and_then(step);
    let said = match (step, &degraded, said(CACHE)) {
        (Some(DegradedStep::Stale), Some(degraded), _) => {
            ReplyFreshness::Stale(age(degraded).unwrap_or_default(), first_error(degraded))
        }
        (None, _, Some((_, kept))) => ReplyFreshness::Cached(age(kept).unwrap_or_default()),
        _ => ReplyFreshness::Unmarked,
    };
    let answer = reply.raw().to().ok();
    let result = step.map_or(CallResult::Answered, CallResult::Degraded);
    (result, answer.map(|answer| ReceivedAnswer { answer, said }))
}

/// Returns the innermost degradation mark: that of the fallback's own call, if it was degraded as well.
fn innermost(said: &RawJson) -> RawJson {
    let inside = |said: &RawJson| said.get("meta")?.get(Degraded::META_KEY);
    let mut said = said.clone();
    while let Some(inner) = inside(&said) {
        said = inner;
    }
    said
}

fn step(said: &RawJson) -> Option<DegradedStep> {
    let step = said.get("step")?.string()?;
    DegradedStep::ALL
        .iter()
        .copied()
        .find(|known| known.as_str() == step)
}

/// Returns the first error, which is that of the tool itself.
fn first_error(said: &RawJson) -> Option<ErrorKind> {
    let errors: Vec<RawJson> = said.get("errors")?.to().ok()?;
    ErrorKind::named(&errors.first()?.get("error")?.string()?)
}
