use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use tool_core::{Descriptor, ExecutorSpec, RawJson, Reply, ToolBuilder, ToolError, ToolState, invoke_fn};

#[test]
fn each_layer_has_its_own_slot_made_once() {
    #[derive(Debug)]
    struct Breaker(AtomicU32);
    struct Limiter(&'static str);

    let state = ToolState::default();
    state
        .get_or_init(|| Breaker(AtomicU32::new(0)))
        .0
        .fetch_add(1, Ordering::SeqCst);
    let again: Arc<Breaker> = state.get_or_init(|| unreachable!("it is there already"));
    assert_eq!(again.0.load(Ordering::SeqCst), 1);
    assert_eq!(state.get_or_init(|| Limiter("other")).0, "other");
}

#[test]
fn a_definition_has_the_order_of_mcp_and_the_schema_that_of_its_author() {
    let schema =
        RawJson::parse(r#"{"type":"object","required":["z","a"],"properties":{"z":{},"a":{}}}"#).unwrap();
    let mut descriptor = Descriptor::new("weather", ExecutorSpec::new("function"));
    descriptor.title = Some("Weather".to_owned());
    descriptor.description = "Forecasts.".to_owned();
    descriptor.input_schema = schema;
    let answer = invoke_fn(|_| async { Ok::<_, ToolError>(Reply::value(RawJson::null())) });
    let tool = ToolBuilder::from_descriptor(descriptor).run(answer);
    assert_eq!(
        tool.definition().as_str(),
        r#"{"name":"weather","title":"Weather","description":"Forecasts.","inputSchema":{"type":"object","required":["z","a"],"properties":{"z":{},"a":{}}}}"#
    );
}
