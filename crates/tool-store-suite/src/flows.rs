//! Tests of storages of workflows that outlive the process. `one` and `other` belong to different gateways.

use std::sync::Arc;

use raw_json::RawJson;
use tool_core::{FlowChoice, FlowClaim, FlowPhase, FlowRun, Flows};

const KEY: FlowChoice<'_> = FlowChoice::Key([7; 32]);

fn step(path: &str, entry: &str) -> (String, RawJson) {
    let entry = RawJson::parse(entry.to_owned()).expect("JSON");
    (path.to_owned(), entry)
}

fn run(id: &str, steps: &[(String, RawJson)]) -> FlowRun {
    FlowRun::new(id, [7; 32]).with_steps(steps.to_vec())
}

async fn save(flows: &Arc<dyn Flows>, run: FlowRun, phase: FlowPhase) {
    flows.save(run, phase).await.expect("it is stored");
}

async fn claim(flows: &Arc<dyn Flows>, choice: FlowChoice<'_>) -> FlowClaim {
    flows.claim(choice).await.expect("it works")
}

/// A run that waits is claimed once, by its key or its id, with the last entry of each step.
pub async fn a_run_that_waits_is_claimed_once(one: Arc<dyn Flows>, other: Arc<dyn Flows>) {
    assert!(one.is_durable());
    assert_eq!(claim(&one, KEY).await, FlowClaim::None);
    let (first, second) = (
        step("a", r#"{"running":true}"#),
        step("b[0].c", r#"{"result":{"n":1e2}}"#),
    );
    save(&one, run("r1", &[first]), FlowPhase::Running).await;
    let last = step("a", r#"{"result":"é"}"#);
    save(&one, run("r1", std::slice::from_ref(&second)), FlowPhase::Running).await;
    save(&one, run("r1", std::slice::from_ref(&last)), FlowPhase::Waiting).await;
    let whole = run("r1", &[last, second]);
    assert_eq!(claim(&other, FlowChoice::Key([8; 32])).await, FlowClaim::None);
    assert_eq!(claim(&other, KEY).await, FlowClaim::Claimed(whole.clone()));
    assert_eq!(claim(&one, KEY).await, FlowClaim::Running);
    assert_eq!(claim(&one, FlowChoice::Id("r1")).await, FlowClaim::Running);
    save(&other, run("r1", &[]), FlowPhase::Waiting).await;
    assert_eq!(claim(&one, FlowChoice::Id("r2")).await, FlowClaim::None);
    assert_eq!(claim(&one, FlowChoice::Id("r1")).await, FlowClaim::Claimed(whole));
    one.end("r1").await.expect("it is deleted");
    assert_eq!(claim(&other, KEY).await, FlowClaim::None);
    one.end("r1").await.expect("there is none to delete");
}

/// A run of this gateway is no reason to wait: the same call is another run.
pub async fn a_run_belongs_to_the_gateway_that_runs_it(one: Arc<dyn Flows>, other: Arc<dyn Flows>) {
    save(&one, run("r1", &[]), FlowPhase::Running).await;
    assert_eq!(claim(&one, KEY).await, FlowClaim::None);
    assert_eq!(claim(&other, KEY).await, FlowClaim::Running);
    save(&one, run("r2", &[]), FlowPhase::Waiting).await;
    assert_eq!(claim(&other, KEY).await, FlowClaim::Claimed(run("r2", &[])));
}

/// Of many claims at once, one succeeds.
pub async fn of_many_claims_one_succeeds(one: Arc<dyn Flows>, other: Arc<dyn Flows>) {
    save(&one, run("r1", &[step("a", "1")]), FlowPhase::Waiting).await;
    let claims = (0..16).map(|index| {
        let flows = if index % 2 == 0 {
            one.clone()
        } else {
            other.clone()
        };
        tokio::spawn(async move { claim(&flows, KEY).await })
    });
    let mut n_claimed = 0;
    for claimed in claims.collect::<Vec<_>>() {
        let claimed = claimed.await.expect("no panic");
        n_claimed += usize::from(matches!(claimed, FlowClaim::Claimed(_)));
    }
    assert_eq!(n_claimed, 1);
}
