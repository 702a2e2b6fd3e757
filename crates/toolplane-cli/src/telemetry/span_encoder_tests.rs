//! Compares our encoder with that of the library.

use std::time::{Duration, UNIX_EPOCH};

use opentelemetry::{
    Array, InstrumentationScope, KeyValue, SpanId, TraceFlags, TraceId, Value,
    trace::{Event, Link, SpanContext, SpanKind, Status, TraceState},
};
use opentelemetry_proto::{
    tonic::collector::trace::v1::ExportTraceServiceRequest,
    transform::trace::tonic::group_spans_by_resource_and_scope,
};
use opentelemetry_sdk::{
    Resource,
    trace::{SpanData, SpanEvents, SpanLinks},
};
use proptest::{collection::vec, prelude::*};
use prost::Message;

use super::span_encoder::encode;

fn value() -> impl Strategy<Value = Value> {
    let text = || "\\PC{0,200}";
    prop_oneof![
        6 => text().prop_map(Value::from),
        4 => any::<i64>().prop_map(Value::I64),
        1 => any::<bool>().prop_map(Value::Bool),
        1 => prop::num::f64::NORMAL.prop_map(Value::F64),
        1 => vec(any::<i64>(), 0..4).prop_map(|values| Value::Array(Array::I64(values))),
        1 => vec(any::<bool>(), 0..4).prop_map(|values| Value::Array(Array::Bool(values))),
        1 => vec(text(), 0..4).prop_map(|values| {
            Value::Array(Array::String(values.into_iter().map(Into::into).collect()))
        }),
    ]
}

fn attributes() -> impl Strategy<Value = Vec<KeyValue>> {
    let pair = ("[a-z._]{0,150}", value()).prop_map(|(key, value)| KeyValue::new(key, value));
    vec(pair, 0..6)
}

fn context() -> impl Strategy<Value = SpanContext> {
    let state = prop_oneof![
        Just(TraceState::default()),
        "[a-z]{1,9}".prop_map(|value| TraceState::from_key_value([("k", value)]).unwrap_or_default()),
    ];
    (any::<u128>(), any::<u64>(), any::<u8>(), any::<bool>(), state).prop_map(
        |(trace, span, flags, is_remote, state)| {
            let (trace, span) = (TraceId::from(trace), SpanId::from(span));
            SpanContext::new(trace, span, TraceFlags::new(flags), is_remote, state)
        },
    )
}

fn events() -> impl Strategy<Value = SpanEvents> {
    let event = ("\\PC{0,20}", attributes(), any::<u32>()).prop_map(|(name, attributes, n_dropped)| {
        Event::new(
            name,
            UNIX_EPOCH + Duration::from_nanos(n_dropped.into()),
            attributes,
            n_dropped,
        )
    });
    (vec(event, 0..3), any::<u32>()).prop_map(|(list, dropped_count)| {
        let mut events = SpanEvents::default();
        (events.events, events.dropped_count) = (list, dropped_count);
        events
    })
}

fn links() -> impl Strategy<Value = SpanLinks> {
    let link = (context(), attributes(), any::<u32>())
        .prop_map(|(context, attributes, n_dropped)| Link::new(context, attributes, n_dropped));
    (vec(link, 0..2), prop_oneof![Just(0), any::<u32>()]).prop_map(|(list, dropped_count)| {
        let mut links = SpanLinks::default();
        (links.links, links.dropped_count) = (list, dropped_count);
        links
    })
}

fn scope() -> impl Strategy<Value = InstrumentationScope> {
    prop_oneof![
        Just(InstrumentationScope::builder("toolplane").build()),
        Just(
            InstrumentationScope::builder("other")
                .with_version("1.2")
                .with_schema_url("https://example.com/1")
                .with_attributes([KeyValue::new("a", 1)])
                .build()
        ),
    ]
}

prop_compose! {
    fn span()(
        span_context in context(),
        parent in prop_oneof![Just(0), any::<u64>()],
        parent_span_is_remote in any::<bool>(),
        span_kind in prop::sample::select(vec![
            SpanKind::Client, SpanKind::Server, SpanKind::Internal, SpanKind::Producer, SpanKind::Consumer,
        ]),
        name in "\\PC{0,200}",
        (start, end) in (any::<u64>(), any::<u64>()),
        attributes in attributes(),
        dropped_attributes_count in prop_oneof![Just(0), any::<u32>()],
        events in events(),
        links in links(),
        status in prop_oneof![
            Just(Status::Unset), Just(Status::Ok), "\\PC{0,9}".prop_map(Status::error),
        ],
        instrumentation_scope in scope(),
    ) -> SpanData {
        SpanData {
            span_context,
            parent_span_id: SpanId::from(parent),
            parent_span_is_remote,
            span_kind,
            name: name.into(),
            start_time: UNIX_EPOCH + Duration::from_nanos(start / 2),
            end_time: UNIX_EPOCH + Duration::from_nanos(end / 2),
            attributes,
            dropped_attributes_count,
            events,
            links,
            status,
            instrumentation_scope,
        }
    }
}

proptest! {
    #[test]
    fn a_request_says_what_that_of_the_library_says(
        spans in vec(span(), 1..8),
        of_resource in attributes(),
        url in prop_oneof![Just(""), Just("https://example.com/schema")],
    ) {
        let builder = Resource::builder_empty();
        let resource = if url.is_empty() {
            builder.with_attributes(of_resource).build()
        } else {
            builder.with_schema_url(of_resource, url).build()
        };
        let ours = ExportTraceServiceRequest::decode(&*encode(&spans, &resource));
        let resource_spans = group_spans_by_resource_and_scope(spans, &(&resource).into());
        prop_assert_eq!(ours, Ok(ExportTraceServiceRequest { resource_spans }));
    }
}
