//! The facade: a program with its own set of tools, without a server in front of it.
//!
//! Run it with `cargo run -p toolplane-examples --example facade` in the root of the repository.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use toolplane::{CallRequest, Toolplane, serde_json::Value, serde_json::json};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // ANCHOR: build
    let plane = Toolplane::builder()
        .file("examples/data/facade.yaml")?
        .on_event(|event| println!("event: {}", event.name()))
        .build()?;
    // Tools that the caller may not call are not listed.
    for tool in plane.view(&plane.local_caller()).await.tools() {
        println!("{}: {}", tool.name(), tool.descriptor().description);
    }
    // ANCHOR_END: build

    // ANCHOR: call
    let weather: Value = plane.call_json("weather", &json!({"city": "Oslo"})).await?;
    println!("{}", weather["sky"]);
    // ANCHOR_END: call

    // ANCHOR: turn
    let request = |city| CallRequest::new("weather").args(&json!({"city": city}));
    let requests = [request("Bergen")?, request("Oslo")?, request("Tromsø")?];
    let turn = plane.turn("trip");
    for outcome in turn.call_many(requests, Toolplane::DEFAULT_CONCURRENCY).await {
        println!("{}", outcome?.into_reply()?.text());
    }
    // ANCHOR_END: turn

    // ANCHOR: errors
    for tool in ["weather", "wether", "shutdown", "survey"] {
        if let Err(error) = plane.call_json::<_, Value>(tool, &json!({})).await {
            println!("{}: {error}", error.kind());
        }
    }
    // ANCHOR_END: errors
    Ok(())
}
