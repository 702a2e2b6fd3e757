use std::time::Duration;

use tokio::time::{sleep, timeout};
use toolplane::{
    CallRequest, RawJson, Toolplane,
    core::{Degraded, DegradedStep, Outcome},
};

use crate::{
    fate::chance,
    record::{Invocation, Operation, Result},
    world::World,
};

/// The tools, and whether doing twice what they do is as good as once.
pub(crate) const TOOLS: [(&str, bool); 4] = [("read", true), ("put", true), ("pay", false), ("send", false)];

/// How long a call may take that says nothing itself.
pub(crate) const CALL_LIMIT: Duration = Duration::from_secs(20);

/// How many things each client wants done.
const OPERATIONS: usize = 12;
/// How often it tries at most where it has a key.
const TRIES: usize = 3;

/// A client: it wants one thing after another, and sometimes loses patience.
pub(crate) async fn client(plane: Toolplane, world: World, seed: u64, client: u64) {
    let mut chance = chance(seed, 1_000_000 + client, 0);
    for _ in 0..OPERATIONS {
        sleep(Duration::from_millis(chance.u64(0..1_500))).await;
        let (tool, is_repeatable) = TOOLS[chance.usize(0..TOOLS.len())];
        let has_key = chance.u32(0..3) == 0;
        let operation = {
            let mut record = world.record();
            record.operations.push(Operation {
                tool,
                is_repeatable,
                has_key,
                ..Operation::default()
            });
            record.operations.len() - 1
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

/// One call, written down.
pub(crate) async fn call(
    plane: &Toolplane,
    world: &World,
    operation: usize,
    deadline: Option<Duration>,
    patience: Option<Duration>,
) -> Result {
    let began = world.now();
    let (tool, has_key, index) = {
        let mut record = world.record();
        record.line(began, operation, "is called");
        let known = &mut record.operations[operation];
        known.invocations.push(Invocation {
            began,
            limit: deadline.map_or(CALL_LIMIT, |deadline| deadline.min(CALL_LIMIT)),
            ended: None,
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
    let result = match answered {
        Some(Ok(outcome)) => match degraded(&outcome) {
            Some(step) => Result::Degraded(step),
            None => Result::Answered,
        },
        Some(Err(error)) => Result::Failed(error.kind()),
        None => Result::Withdrawn,
    };
    let at = world.now();
    let mut record = world.record();
    record.line(at, operation, &format!("ends: {result:?}"));
    record.operations[operation].invocations[index].ended = Some((at, result));
    result
}

/// How an answer was found, if it says that it was found in another way. Of a stand-in whose own call was answered so, that
/// counts.
fn degraded(outcome: &Outcome) -> Option<DegradedStep> {
    let Outcome::Reply(reply) = outcome else {
        return None;
    };
    let (_, said) = reply.meta().iter().find(|(key, _)| *key == Degraded::META_KEY)?;
    let inside = |said: &RawJson| said.get("meta")?.get(Degraded::META_KEY);
    let mut said = said.clone();
    while let Some(inner) = inside(&said) {
        said = inner;
    }
    let step = said.get("step")?.string()?;
    DegradedStep::ALL.into_iter().find(|known| known.as_str() == step)
}
