//! Layers and an observer of the program itself, in the standard stack.
//!
//! Run it with `cargo run -p toolplane-examples --example extend-layer`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{error::Error, sync::Arc};

use toolplane::{
    CallRequest, Place, Toolplane,
    core::{Arguments, CallContext, ErrorKind, Event, Invoke, Outcome, ToolError, serde_json::json},
};

/// A tool of its own kind each: the layers are the same for all of them.
const CONFIGURATION: &str = r#"
tools:
  orders:
    description: Lists the orders of a tenant.
    executor: {kind: mock, template: '{"orders_of": {{ tenant }}}'}
  refund:
    description: Pays an order back.
    executor: {kind: mock, result: done}
"#;

// ANCHOR: layer
/// Writes down who called what and how it ended.
struct Audit<S> {
    inner: S,
}

impl<S: Invoke> Invoke for Audit<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let result = self.inner.invoke(cx).await;
        let end = match &result {
            Ok(_) => "done".to_owned(),
            Err(error) => error.kind().to_string(),
        };
        // A dry run passes the layers as well: nothing is counted, stored or sent then.
        if !cx.is_dry_run() {
            println!(
                "audit: {} called {}: {end}",
                cx.origin.caller.principal,
                cx.tool().name()
            );
        }
        result
    }
}

/// Refuses refunds.
struct NoRefunds<S> {
    inner: S,
}

impl<S: Invoke> Invoke for NoRefunds<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        if &**cx.tool().name() == "refund" {
            cx.explain("refunds", || "refused: the books are closed".to_owned());
            return Err(ToolError::new(ErrorKind::Denied, "the books are closed"));
        }
        self.inner.invoke(cx).await
    }
}
// ANCHOR_END: layer

// ANCHOR: attempt
/// Adds the caller's tenant to the arguments of each attempt.
struct Tenant<S> {
    inner: S,
}

impl<S: Invoke> Invoke for Tenant<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let mut arguments = cx.arguments.value().clone();
        arguments["tenant"] = json!(&*cx.origin.caller.tenant);
        cx.arguments = Arc::new(Arguments::from_serialize(&arguments)?);
        self.inner.invoke(cx).await
    }
}
// ANCHOR_END: attempt

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // ANCHOR: build
    let plane = Toolplane::builder()
        .yaml(CONFIGURATION)?
        .layer(Place::Call, |inner| Audit { inner })
        .layer(Place::Call, |inner| NoRefunds { inner })
        .layer(Place::Attempt, |inner| Tenant { inner })
        .on_event(|event| {
            if let Event::CallFinished { cx, elapsed, .. } = event {
                println!(
                    "event: {} of {} after {elapsed:?}",
                    event.name(),
                    cx.tool().name()
                );
            }
        })
        .build()?;
    // ANCHOR_END: build

    let orders = plane.call(CallRequest::new("orders")).await?.into_reply()?;
    println!("{}", orders.text());
    let explained = plane.call_explained(CallRequest::new("refund")).await;
    for decision in explained
        .decisions
        .iter()
        .filter(|decision| decision.layer == "refunds")
    {
        println!("{}: {}", decision.layer, decision.decision);
    }
    match explained.result {
        Err(error) if error.kind() == ErrorKind::Denied => Ok(()),
        other => Err(format!("refunds are refused: {other:?}").into()),
    }
}
