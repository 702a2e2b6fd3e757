//! The choice of a candidate.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tool_core::{Caller, Health as _, HealthReport, LatencyClass, Tool};
use tool_route::{Obstacle, RouteDefinition, RouteReport, Router};
use tool_testkit::{ScriptStep, ScriptedExecutor};

use crate::plane::{Plane, client, declared, now};

fn done() -> ScriptedExecutor {
    ScriptedExecutor::new([ScriptStep::Value(json!("done"))])
}

fn router(plane: &Arc<Plane>, settings: &Value) -> Router {
    let definition = RouteDefinition::read(settings).expect("it is usable");
    Router::new(definition, plane.clone())
}

async fn report(plane: &Arc<Plane>, settings: &Value) -> RouteReport {
    router(plane, settings)
        .report(&Caller::local(), &client(), &plane.clock)
        .await
}

/// Returns each candidate with its score, or why it is out.
fn judged(report: &RouteReport) -> Vec<(&str, Result<f64, &str>)> {
    let candidates = report.candidates.iter();
    let judged = candidates.map(|candidate| {
        let score = candidate
            .score
            .ok_or_else(|| candidate.out.as_deref().unwrap_or_default());
        (candidate.tool.as_str(), score)
    });
    judged.collect()
}

fn measured(n_calls: u64, n_failures: u64, mean: Duration) -> HealthReport {
    let mut report = HealthReport::UNKNOWN;
    (report.n_calls, report.n_failures, report.mean) = (n_calls, n_failures, mean);
    report.with_status()
}

#[tokio::test(start_paused = true)]
async fn the_score_is_that_of_the_table() {
    let plane = Plane::new();
    plane.add("plain", |_| {}, done());
    plane.add("fast", declared(LatencyClass::Fast), done());
    plane.add("slow", declared(LatencyClass::Slow), done());
    plane.add("priced", |metadata| metadata.cost_per_call = Some(0.005), done());
    plane.add(
        "live",
        |metadata| metadata.tags = vec!["realtime-data".to_owned()],
        done(),
    );
    plane.add("degraded", |_| {}, done());
    plane.reports.lock().insert(
        "degraded".to_owned(),
        measured(100, 10, Duration::from_millis(500)),
    );
    plane.add("unhealthy", |_| {}, done());
    plane.reports.lock().insert(
        "unhealthy".to_owned(),
        measured(100, 50, Duration::from_millis(50)),
    );
    plane.add(
        "other",
        |metadata| metadata.capabilities = vec!["fetch".to_owned()],
        done(),
    );
    let settings = json!({
        "capability": "search",
        "requirements": ["realtime-data", "news"],
        "prioritizeSpeed": true,
        "minimizeCost": true,
    });
    let report = report(&plane, &settings).await;
    assert_eq!(
        judged(&report),
        [
            ("live", Ok(130.0)),
            ("fast", Ok(120.0)),
            ("plain", Ok(100.0)),
            ("priced", Ok(95.0)),
            ("degraded", Ok(80.0)),
            ("slow", Ok(70.0)),
            ("unhealthy", Err("it is unhealthy")),
        ]
    );
    assert_eq!(report.tool.as_deref(), Some("live"));
    assert_eq!(
        report.candidates[0].to_string(),
        "`live`: 130.0 (+30 meets 1 of 2 requirements)"
    );
    assert_eq!(
        report.candidates[3].to_string(),
        "`priced`: 95.0 (-5 costs 0.005 US dollars)"
    );
}

#[tokio::test(start_paused = true)]
async fn measurements_replace_declarations_once_there_are_enough() {
    let plane = Plane::new();
    plane.add("a", declared(LatencyClass::Fast), done());
    let settings = json!({"capability": "search", "priority": "speed"});
    let slow = Duration::from_secs(2);
    plane.reports.lock().insert("a".to_owned(), measured(9, 0, slow));
    assert_eq!(judged(&report(&plane, &settings).await), [("a", Ok(120.0))]);
    plane.reports.lock().insert("a".to_owned(), measured(10, 0, slow));
    assert_eq!(judged(&report(&plane, &settings).await), [("a", Ok(70.0))]);
    // Failures as well: nine calls say nothing yet.
    plane.reports.lock().insert("a".to_owned(), measured(9, 9, slow));
    assert_eq!(judged(&report(&plane, &settings).await), [("a", Ok(120.0))]);
}

#[tokio::test(start_paused = true)]
async fn the_operator_changes_the_weights() {
    let plane = Plane::new();
    plane.add("a", |metadata| metadata.sla = Some(98.0), done());
    plane.add("b", |_| {}, done());
    let settings = json!({"capability": "search", "priority": "reliability", "weights": {"failures": 10}});
    // Nothing is known of `b`, so that 1 % is assumed.
    assert_eq!(
        judged(&report(&plane, &settings).await),
        [("b", Ok(90.0)), ("a", Ok(80.0))]
    );
}

#[tokio::test(start_paused = true)]
async fn constraints_need_a_figure() {
    let plane = Plane::new();
    plane.add("bare", |_| {}, done());
    plane.add(
        "good",
        |metadata| {
            metadata.latency = Some(LatencyClass::Medium);
            metadata.cost_per_call = Some(0.01);
            metadata.sla = Some(99.9);
        },
        done(),
    );
    let out = async |constraints: Value| {
        let settings = json!({"capability": "search", "constraints": constraints});
        let report = report(&plane, &settings).await;
        let judged = judged(&report).into_iter();
        judged
            .map(|(name, score)| format!("{name}: {}", score.err().unwrap_or("in")))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        out(json!({"max_latency": "1s"})).await,
        ["good: in", "bare: nothing says that it takes at most 1 s"]
    );
    assert_eq!(
        out(json!({"max_latency": "500ms"})).await[1],
        "good: nothing says that it takes at most 500 ms"
    );
    assert_eq!(
        out(json!({"max_cost": 0.01})).await,
        ["good: in", "bare: its cost is not declared"]
    );
    assert_eq!(
        out(json!({"max_cost": 0.001})).await[1],
        "good: it costs 0.01 US dollars, and 0.001 are allowed"
    );
    assert_eq!(
        out(json!({"min_sla": "99.5%"})).await,
        [
            "good: in",
            "bare: its share of successful calls is neither measured nor declared"
        ]
    );
    // 1 of 100 failed: too few calls for a promise of 1 in 200.
    let second = Duration::from_secs(1);
    plane
        .reports
        .lock()
        .insert("good".to_owned(), measured(100, 1, second));
    assert_eq!(out(json!({"min_sla": "99.5%"})).await[0], "good: in");
    plane
        .reports
        .lock()
        .insert("good".to_owned(), measured(400, 4, second));
    assert_eq!(
        out(json!({"min_sla": "99.5%"})).await[1],
        "good: 99.0 % of its calls succeed, and 99.5 % are required"
    );
    plane
        .reports
        .lock()
        .insert("good".to_owned(), measured(400, 0, second * 2));
    assert_eq!(
        out(json!({"max_latency": "1s"})).await[1],
        "good: it takes 2 s, and 1 s are allowed"
    );
}

/// Chooses once, and returns the name.
async fn choose(router: &Router, plane: &Arc<Plane>) -> String {
    let wanted = &router.definition().wanted;
    let tools = tool_route::RouteTools::find(&**plane, wanted, &Caller::local(), &client()).await;
    let chosen: Option<Arc<Tool>> = router.choose(&tools, &Caller::local(), now(plane));
    chosen.expect("one is in").name().to_string()
}

#[tokio::test(start_paused = true)]
async fn tools_that_are_about_as_good_do_not_take_turns() {
    let plane = Plane::new();
    plane.add("a", |_| {}, done());
    plane.add("b", |_| {}, done());
    let router = router(&plane, &json!({"capability": "search", "priority": "speed"}));
    let set = |name: &str, milliseconds: u64| {
        let report = measured(100, 0, Duration::from_millis(milliseconds));
        plane.reports.lock().insert(name.to_owned(), report);
    };
    set("a", 500);
    set("b", 700);
    assert_eq!(choose(&router, &plane).await, "a");
    // Figures are at most a second old. In each of them, another one is a little faster.
    for (a, b) in [(600, 590), (510, 500), (640, 600), (520, 530)] {
        tokio::time::advance(Duration::from_secs(1)).await;
        set("a", a);
        set("b", b);
        assert_eq!(choose(&router, &plane).await, "a", "{a} and {b}");
    }
    // Clearly faster is another matter.
    tokio::time::advance(Duration::from_secs(1)).await;
    set("a", 900);
    set("b", 400);
    assert_eq!(choose(&router, &plane).await, "b");
    // So is a better score.
    tokio::time::advance(Duration::from_secs(1)).await;
    set("a", 150);
    set("b", 400);
    assert_eq!(choose(&router, &plane).await, "a");
}

#[tokio::test(start_paused = true)]
async fn a_small_difference_of_scores_does_not_change_the_lead() {
    let plane = Plane::new();
    plane.add("a", |metadata| metadata.cost_per_call = Some(0.002), done());
    let route =
        |hysteresis: u32| json!({"capability": "search", "priority": "cost", "hysteresis": hysteresis});
    let (calm, eager) = (router(&plane, &route(5)), router(&plane, &route(0)));
    assert_eq!(choose(&calm, &plane).await, "a");
    assert_eq!(choose(&eager, &plane).await, "a");
    plane.add("b", |_| {}, done());
    assert_eq!(choose(&calm, &plane).await, "a");
    assert_eq!(choose(&eager, &plane).await, "b");
}

#[tokio::test(start_paused = true)]
async fn who_may_not_call_the_leading_tool_does_not_take_the_lead_from_it() {
    let plane = Plane::new();
    plane.add("a", |metadata| metadata.cost_per_call = Some(0.0), done());
    plane.add("b", |metadata| metadata.cost_per_call = Some(0.001), done());
    let router = router(
        &plane,
        &json!({"capability": "search", "priority": "cost", "hysteresis": 5}),
    );
    assert_eq!(choose(&router, &plane).await, "a");
    plane.obstacles.lock().insert("a".to_owned(), Obstacle::Forbidden);
    assert_eq!(choose(&router, &plane).await, "b");
    plane.obstacles.lock().clear();
    assert_eq!(choose(&router, &plane).await, "a");
}

#[tokio::test(start_paused = true)]
async fn what_is_out_of_service_is_told_and_what_is_forbidden_is_not_counted() {
    let plane = Plane::new();
    plane.add("a", |_| {}, done());
    plane.add("b", |_| {}, done());
    plane.add("c", |_| {}, done());
    let open = Obstacle::OutOfService {
        reason: "its circuit breaker is open".to_owned(),
        retry_after: Some(Duration::from_secs(3)),
    };
    plane.obstacles.lock().insert("a".to_owned(), open);
    plane.obstacles.lock().insert("b".to_owned(), Obstacle::Forbidden);
    let report = report(&plane, &json!({"capability": "search"})).await;
    assert_eq!(
        judged(&report),
        [
            ("c", Ok(100.0)),
            ("a", Err("its circuit breaker is open")),
            ("b", Err("the caller may not call it")),
        ]
    );
    assert!(report.candidates[2].is_forbidden);
}

#[tokio::test(start_paused = true)]
async fn tools_are_named_as_well_and_a_route_is_no_candidate() {
    let plane = Plane::new();
    plane.add("exa__search", |metadata| metadata.capabilities.clear(), done());
    plane.add(
        "a",
        |metadata| metadata.tags = vec!["production-ready".to_owned()],
        done(),
    );
    plane.add("b", |_| {}, done());
    plane.route(json!({"tools": ["*"]}));
    let settings = json!({"capability": "search", "tags": ["production-ready"], "tools": ["exa__*"]});
    let found = report(&plane, &settings).await;
    assert_eq!(judged(&found).len(), 2, "{found:?}");
    let all = report(&plane, &json!({"tools": ["*"]})).await;
    assert_eq!(judged(&all).len(), 3, "{all:?}");
    assert_eq!(plane.tool("a").n_calls, 0);
}
