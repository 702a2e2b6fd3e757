//! Spans, progress and explanations of workflows.

use std::sync::{Arc, Mutex};

use serde_json::json;
use toolplane::{
    RawJson,
    core::Progress,
    observe::{EndedSpan, Sampler, SpanKind, SpanProcessor, Tracer},
};

use super::{World, request};

const TWO: &str =
    "workflows: {two: {description: A., steps: [{tool: one}, {tool: other, depends_on: [one]}]}}";

/// Span that has ended: its kind, name, own id, that of its parent, and its trace.
type SeenSpan = (SpanKind, String, u64, Option<u64>, u128);

#[derive(Default)]
struct Spans(Mutex<Vec<SeenSpan>>);

impl SpanProcessor for Spans {
    fn on_end(&self, span: EndedSpan) {
        let parent = span.parent.as_ref().map(|parent| parent.span_id);
        let (id, trace) = (span.context.span_id, span.context.trace_id);
        let mut spans = self.0.lock().expect("nothing panics with it");
        spans.push((span.kind(), span.name(), id, parent, trace));
    }
}

#[tokio::test(start_paused = true)]
async fn steps_are_spans_below_that_of_the_workflow() {
    let spans = Arc::new(Spans::default());
    let builder = World::default().builder(&["one", "other"], TWO);
    let plane = builder
        .tracer(Tracer::new(Sampler::DEFAULT, spans.clone()))
        .build()
        .unwrap();
    plane.call(request("two", &json!({}))).await.unwrap();
    let spans = spans.0.lock().unwrap();
    let of = |kind: SpanKind, tool: &str| {
        let mut found = spans
            .iter()
            .filter(|(of, name, ..)| *of == kind && name.contains(tool));
        let found = (found.next(), found.next());
        match found {
            (Some(span), None) => span,
            _ => panic!("no single span of `{tool}`: {spans:?}"),
        }
    };
    let attempt = of(SpanKind::Attempt, "two");
    for tool in ["one", "other"] {
        let call = of(SpanKind::Call, tool);
        assert_eq!((call.3, call.4), (Some(attempt.2), attempt.4), "{spans:?}");
    }
}

/// Messages of progress.
#[derive(Default)]
struct Reports(Mutex<Vec<String>>);

impl Progress for Reports {
    fn report(&self, report: RawJson) {
        let message = report.get("message").and_then(|message| message.string());
        self.0.lock().expect("nothing panics with it").extend(message);
    }
}

#[tokio::test(start_paused = true)]
async fn progress_is_reported_after_each_step() {
    let plane = World::default().plane(&["one", "other"], TWO);
    let reports = Arc::new(Reports::default());
    let call = request("two", &json!({})).progress(reports.clone());
    plane.call(call).await.unwrap();
    assert_eq!(*reports.0.lock().unwrap(), ["one: success", "other: success"]);
}

#[tokio::test(start_paused = true)]
async fn an_explanation_has_the_decisions_of_each_step() {
    let plane = World::default().plane(&["one", "other"], TWO);
    let explained = plane.call_explained(request("two", &json!({}))).await;
    explained.result.unwrap();
    let of_workflows = explained
        .decisions
        .iter()
        .filter(|decision| decision.layer == "workflow");
    let said: Vec<_> = of_workflows.map(|decision| decision.decision.as_str()).collect();
    assert_eq!(
        said,
        [
            "step `one` calls `one`",
            "step `other` calls `other`",
            "step `one` (`one`): success, 0 s",
            "step `other` (`other`): success, 0 s",
        ]
    );
    let n_attempts = explained
        .decisions
        .iter()
        .filter(|decision| decision.layer == "attempt")
        .count();
    assert_eq!(n_attempts, 3);
}
