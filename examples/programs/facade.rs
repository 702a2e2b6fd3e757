//! The facade: a program with its own set of tools, without a server in front of it.
//!
//! Run it with `cargo run -p toolplane-examples --example facade`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, time::Duration};

use toolplane::{
    CallRequest, Toolplane,
    core::{ErrorKind, Outcome},
};

/// Content of `toolplane.yaml`; `Toolplane::from_file` reads it from the file.
const CONFIGURATION: &str = r#"
tools:
  weather:
    description: Says what the weather is like in a city.
    input_schema:
      type: object
      properties:
        city: {type: string}
      required: [city]
    executor:
      kind: mock
      template: '{"city": {{ city }}, "sky": "clear"}'
  shutdown:
    description: Turns everything off.
    executor: {kind: mock, result: done}
policy:
  blocklist: [shutdown]
"#;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let plane = Toolplane::from_yaml(CONFIGURATION)?;

    // Tools that the caller may not call are not listed.
    for tool in plane.view(&plane.local_caller()).await.tools() {
        println!("{}: {}", tool.name(), tool.descriptor().description);
    }

    let request = CallRequest::new("weather")
        .json(r#"{"city": "Oslo"}"#)?
        .deadline(Duration::from_secs(5));
    if let Outcome::Reply(reply) = plane.call(request).await? {
        println!("weather answered {}", reply.raw());
    }

    // Every layer explains its decision.
    let explained = plane
        .call_explained(CallRequest::new("weather").json(r#"{"city": 7}"#)?)
        .await;
    for note in &explained.decisions {
        println!("{:>10}: {}", note.layer, note.decision);
    }
    expect_error(explained.result, ErrorKind::InvalidArguments)?;
    expect_error(plane.call(CallRequest::new("shutdown")).await, ErrorKind::Denied)?;

    plane.shutdown().await;
    Ok(())
}

/// Programs match on the kind of an error; its text is for people and models.
fn expect_error(
    result: Result<Outcome, toolplane::core::ToolError>,
    kind: ErrorKind,
) -> Result<(), Box<dyn Error>> {
    match result {
        Err(error) if error.kind() == kind => {
            println!("{kind}: {error}");
            Ok(())
        }
        other => Err(format!("expected `{kind}`, got {other:?}").into()),
    }
}
