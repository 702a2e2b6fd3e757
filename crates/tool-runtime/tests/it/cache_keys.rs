//! Cache keys: calls that differ in anything that a result may depend on share no result.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::runtime::Builder;
use tool_core::{Arguments, CallContext, Caller, Invoke, Layer, Outcome, Target, Tool};
use tool_runtime::{CacheLayer, TokioClock};
use tool_runtime::{CacheScope, CacheSettings};
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool};

/// All parts of a call that a result may depend on.
#[derive(Debug, Clone, PartialEq)]
struct Call {
    tenant: &'static str,
    principal: &'static str,
    tool: &'static str,
    version: Option<&'static str>,
    description: &'static str,
    kind: &'static str,
    config: Value,
    arguments: Value,
}

fn one_of<T: std::fmt::Debug + Clone + 'static>(choices: &[T]) -> impl Strategy<Value = T> + use<T> {
    proptest::sample::select(choices.to_vec())
}

/// Few values of each part, among them values that look equal when they are concatenated.
fn calls() -> impl Strategy<Value = Call> {
    let names = ["a", "ab", "b", ""];
    let values = [
        json!({}),
        json!({"a": 1}),
        json!({"a": "1"}),
        json!({"a": 1, "b": [true, null]}),
        json!({"a": 1, "b": [null, true]}),
        json!({"a": {"b": 1}}),
    ];
    (
        one_of(&names),
        one_of(&names),
        one_of(&["t", "tt"]),
        one_of(&[None, Some("1"), Some("2")]),
        one_of(&["x", "y"]),
        one_of(&["http", "mcp"]),
        one_of(&values),
        one_of(&values),
    )
        .prop_map(
            |(tenant, principal, tool, version, description, kind, config, arguments)| Call {
                tenant,
                principal,
                tool,
                version,
                description,
                kind,
                config,
                arguments,
            },
        )
}

fn context(of: &Call, scope: CacheScope, clock: &Arc<TokioClock>) -> CallContext {
    let mut tool = TestTool::new(of.tool);
    tool.descriptor.version = of.version.map(ToOwned::to_owned);
    tool.descriptor.description = of.description.to_owned();
    tool.descriptor.executor.kind = of.kind.to_owned();
    tool.descriptor.executor.config = of.config.clone();
    tool.settings.set(CacheSettings::default().with_scope(scope));
    let tool: Arc<Tool> = tool.build(ScriptedExecutor::new([]));
    let mut caller = Caller::new(of.principal);
    caller.tenant = of.tenant.into();
    let arguments = Arguments::from_value(of.arguments.clone()).unwrap();
    CallContext::new(
        Target::Tool(tool),
        Arc::new(arguments),
        Arc::new(caller),
        clock.clone(),
    )
}

/// Returns `true` if the second call is answered with the first one's reply.
fn is_shared(first: &Call, second: &Call, scope: CacheScope) -> bool {
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let clock = Arc::new(TokioClock::new());
        let script = ScriptedExecutor::new([ScriptStep::Echo]);
        let stack = CacheLayer::new(1 << 20).layer(script.clone());
        for call in [first, second] {
            let result = stack.invoke(&mut context(call, scope, &clock)).await;
            assert!(matches!(result, Ok(Outcome::Reply(_))));
        }
        script.n_calls() == 1
    })
}

proptest! {
    #[test]
    fn calls_are_the_same_only_if_everything_is((first, second) in (calls(), calls())) {
        prop_assert_eq!(is_shared(&first, &second, CacheScope::Principal), first == second);
        prop_assert!(is_shared(&first, &first.clone(), CacheScope::Principal));
    }

    #[test]
    fn one_part_that_differs_is_enough(call in calls(), other in calls(), part in 0..8) {
        let mut changed = call.clone();
        match part {
            0 => changed.tenant = other.tenant,
            1 => changed.principal = other.principal,
            2 => changed.tool = other.tool,
            3 => changed.version = other.version,
            4 => changed.description = other.description,
            5 => changed.kind = other.kind,
            6 => changed.config = other.config,
            _ => changed.arguments = other.arguments,
        }
        prop_assert_eq!(is_shared(&call, &changed, CacheScope::Principal), call == changed);
        let same_but_for_who_asks = Call { principal: call.principal, ..changed.clone() } == call;
        prop_assert_eq!(is_shared(&call, &changed, CacheScope::Shared), same_but_for_who_asks);
    }
}

#[test]
fn arguments_that_mean_the_same_are_the_same() {
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let script = ScriptedExecutor::new([ScriptStep::Echo]);
        let stack = CacheLayer::new(1 << 20).layer(script.clone());
        let clock = Arc::new(TokioClock::new());
        let call = Call {
            tenant: "a",
            principal: "b",
            tool: "t",
            version: None,
            description: "x",
            kind: "http",
            config: json!({}),
            arguments: json!({}),
        };
        for text in [r#"{"a":1,"b":"é"}"#, "{ \"b\": \"\\u00e9\", \"a\": 1e0 }"] {
            let mut cx = context(&call, CacheScope::Principal, &clock);
            cx.arguments = Arc::new(Arguments::parse(text).unwrap());
            stack.invoke(&mut cx).await.unwrap();
        }
        assert_eq!(script.n_calls(), 1);
    });
}
