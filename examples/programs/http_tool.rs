//! One GET as a tool, without the facade: the request is data. An attempt that is refused is repeated.
//!
//! Run it with `cargo run -p toolplane-examples --example http-tool`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use tool_core::{Descriptor, ExecutorSpec, Layer, TargetBackend, serde_json::json};
use tool_exec_http::HttpExecutor;
use tool_runtime::{RetryLayer, RetrySettings};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let settings = json!({
        "url": format!("http://{}/v1/weather/{{city}}?days={{days}}", toolplane_examples::weather::serve()?),
        "headers": {"Authorization": "Bearer a-key"},
        "response_path": "$.forecast[*].temperature",
        "allow_private": true,
    });
    let descriptor = Descriptor::new("weather", ExecutorSpec::new("http").with_config(settings));
    let api = HttpExecutor::default().tool_with(descriptor, |tool| {
        tool.read_only(true).setting(RetrySettings::default())
    })?;
    let stack = RetryLayer::default().layer(TargetBackend);
    let arguments = json!({"city": "Bad Homburg/v. d. Höhe", "days": 2});
    println!("{}", api.tool().call_through(&stack, &arguments).await?.text());
    Ok(())
}
