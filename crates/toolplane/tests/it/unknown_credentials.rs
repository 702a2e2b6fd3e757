//! An unnamed credential in an upstream's error: it is shown nowhere.

use std::{
    error::Error,
    io,
    sync::{Arc, Mutex},
};

use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool};
use toolplane::{
    CallRequest, Toolplane,
    core::{ErrorKind, Event, Observe, ToolError},
    observe::{EndedSpan, Sampler, SpanProcessor, Tracer},
};
use tracing::{Level, instrument::WithSubscriber};

/// Information for operators: alerts, span descriptions and the log.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Told {
    fn add(&self, text: &str) {
        self.0
            .lock()
            .expect("no test panics with it")
            .push(text.to_owned());
    }
}

impl Observe for Told {
    fn observe(&self, event: &Event<'_>) {
        if let Event::Alert { alert, .. } = event {
            self.add(&format!("alert: {}", alert.message));
        }
    }
}

impl SpanProcessor for Told {
    fn on_end(&self, span: EndedSpan) {
        self.add(&format!("span: {}", span.failure().expect("it failed")));
    }
}

impl io::Write for Told {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.add(&String::from_utf8_lossy(line));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn it_reaches_neither_log_nor_span_nor_alert_nor_model() {
    let said =
        "https://ada:hunter2@10.1.2.3:8080/v1 refused Authorization: Bearer hunter2.A1 and api_key=hunter2";
    let masked =
        "https://[redacted]@10.1.2.3:8080/v1 refused Authorization: Bearer [redacted] and api_key=[redacted]";
    let told = Told::default();
    let plane = Toolplane::builder()
        // This kind raises an alert.
        .executor(Arc::new(ScriptedExecutor::new([ScriptStep::Fail(
            ToolError::new(ErrorKind::Internal, said),
        )])))
        .tracer(Tracer::new(Sampler::DEFAULT, Arc::new(told.clone())))
        .observer(Arc::new(told.clone()))
        .tool(TestTool::new("t").descriptor)
        .build()
        .expect("can be set up");
    let log = told.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(Level::TRACE)
        .with_ansi(false)
        .with_writer(move || log.clone())
        .finish();
    let called = plane.call_explained(CallRequest::new("t"));
    let explained = called.with_subscriber(subscriber).await;

    let told = told.0.lock().expect("no test panics with it").clone();
    assert!(!told.concat().contains("hunter2"), "{told:#?}");
    assert!(told.contains(&format!("span: {masked}")), "{told:#?}");
    let alert = format!("alert: a call of `t` ended as `internal`: {masked}");
    assert!(told.contains(&alert), "{told:#?}");
    for said in ["attempt failed", "failed"] {
        let line = format!("{said}: {masked}");
        assert!(told.iter().any(|told| told.contains(&line)), "{told:#?}");
    }
    let error = explained.result.expect_err("it fails");
    assert_eq!(
        error.message(),
        "[internal address] refused Authorization: Bearer [redacted] and api_key=[redacted]"
    );
    let cause = error.source().expect("the error as it was");
    assert_eq!(cause.to_string(), masked, "which the command line shows");
    let notes: Vec<_> = explained.decisions.iter().map(|note| &note.decision).collect();
    assert!(!format!("{notes:?}").contains("hunter2"), "{notes:?}");
}
