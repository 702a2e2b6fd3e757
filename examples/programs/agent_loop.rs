//! The loop of an agent: the calls of each answer of the model are a turn, and the model is told how they ended.
//!
//! Run it with `cargo run -p toolplane-examples --example agent-loop`. The model is scripted.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use toolplane::{
    CallRequest, Toolplane,
    core::{ErrorKind, Outcome, ToolError},
    policy::ToolChoice,
    serde_json::{Value, json},
};

const CONFIGURATION: &str = r#"
tools:
  weather:
    description: Says what the weather is like in a city.
    input_schema: {type: object, properties: {city: {type: string}}, required: [city]}
    executor: {kind: mock, template: '{"city": {{ city }}, "sky": "clear"}'}
  news:
    description: Says what has happened.
    executor: {kind: mock, error: {kind: rate_limited, message: the newsroom sleeps}}
  pay:
    description: Pays a bill.
    timeout_ms: 50
    executor: {kind: mock, result: paid, latency_ms: 60000}
policy:
  tool_choice: required
  limits: {calls_per_turn: 2}
"#;

/// Returns the calls in the scripted answers of the model.
fn answers() -> Vec<Vec<(&'static str, Value)>> {
    let weather = |city| ("weather", json!({"city": city}));
    vec![
        vec![weather("Oslo"), ("weather", json!({"town": "Oslo"}))],
        vec![weather("Bergen"), weather("Oslo"), weather("Tromsø")],
        vec![("news", json!({}))],
        vec![],
        vec![("pay", json!({}))],
    ]
}

// ANCHOR: turn
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let plane = Toolplane::from_yaml(CONFIGURATION)?;
    for calls in answers() {
        let turn = plane.turn("conversation 7");
        // The provider of the model takes this as its own `tool_choice`.
        assert_eq!(turn.tool_choice(), ToolChoice::Required);
        let requests = calls
            .iter()
            .map(|(tool, arguments)| CallRequest::new(*tool).args(arguments))
            .collect::<Result<Vec<_>, _>>()?;
        let results = turn.call_many(requests, Toolplane::DEFAULT_CONCURRENCY).await;
        for ((tool, _), result) in calls.iter().zip(results) {
            println!("{tool}: {}", for_model(result));
        }
        if let Err(error) = turn.finish() {
            println!("ask the model again: {error}");
        }
    }
    plane.shutdown().await;
    Ok(())
}
// ANCHOR_END: turn

// ANCHOR: errors
/// Writes down for the model how a call ended.
fn for_model(result: Result<Outcome, ToolError>) -> String {
    let error = match result.and_then(Outcome::into_reply) {
        Ok(reply) => return reply.text(),
        Err(error) => error,
    };
    match error.kind() {
        // Faults of the program or of its operator: a model cannot mend them.
        ErrorKind::Auth | ErrorKind::Internal => "the tool is out of order".to_owned(),
        // The bill may have been paid. The program asks the bank before anyone calls again.
        _ if error.may_have_run() => format!("{error}; ask a person"),
        _ => format!("{error}; {}", error.advice()),
    }
}
// ANCHOR_END: errors
