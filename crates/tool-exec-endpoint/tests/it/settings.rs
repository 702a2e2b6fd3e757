//! Settings of tools.

use serde_json::{Value, json};
use tool_core::{Descriptor, Executor, ExecutorSpec};
use tool_exec_endpoint::{EndpointExecutor, EndpointSettings};

use crate::harness::{endpoint, script};

fn executor(names: &[&str]) -> EndpointExecutor {
    let endpoints = names.iter().map(|name| {
        let settings = EndpointSettings::new(*name, script("").command);
        endpoint(settings)
    });
    EndpointExecutor::new(endpoints)
}

fn descriptor(config: Value) -> Descriptor {
    Descriptor::new("tool", ExecutorSpec::new("endpoint").with_config(config))
}

#[test]
fn a_tool_finds_its_endpoint() {
    for (known, config, upstream) in [
        (&["a"][..], json!({}), Some("a")),
        (
            &["a"],
            json!({"command": "x", "origin": "remote", "safety": "s"}),
            Some("a"),
        ),
        (&["a", "b"], json!({"endpoint": "b", "tool": "own"}), Some("b")),
        (&["a", "b"], json!({}), None),
        (&[], json!({}), None),
        (&["a"], json!({"endpoint": "c"}), None),
    ] {
        let executor = executor(known);
        let tool = descriptor(config);
        assert_eq!(executor.upstream(&tool).as_deref(), upstream);
        assert_eq!(executor.prepare(&tool).is_ok(), upstream.is_some());
        assert_eq!(executor.provenance(&tool).place.is_some(), upstream.is_some());
    }
}

#[test]
fn problems_have_a_place_and_a_hint() {
    for (known, config, place, said) in [
        (
            &["a", "b"][..],
            json!({"endpoint": "c"}),
            "/endpoint",
            "no endpoint `c` | there are `a`, `b`",
        ),
        (
            &["a", "b"],
            json!({}),
            "",
            "does not say which endpoint runs it | there are `a`, `b`",
        ),
        (
            &[],
            json!({}),
            "",
            "no endpoint that runs the tool | add it to `endpoints`, or set `MCP_ENDPOINT`",
        ),
        (
            &["a"],
            json!({"endpont": "a"}),
            "/endpont",
            "unknown setting `endpont` | did you mean `endpoint`?",
        ),
        (&["a"], json!({"tool": 7}), "/tool", "invalid type"),
        (&["a"], json!([]), "", "must be an object"),
    ] {
        let problems = executor(known).prepare(&descriptor(config)).err().unwrap();
        let shown: Vec<_> = problems
            .iter()
            .map(|problem| {
                let hint = problem.hint.clone().unwrap_or_default();
                (problem.pointer.as_str(), format!("{} | {hint}", problem.message))
            })
            .collect();
        assert_eq!(shown.len(), 1, "{shown:?}");
        assert!(shown[0].0 == place && shown[0].1.contains(said), "{shown:?}");
    }
}

#[test]
fn the_place_of_a_tool_is_its_command() {
    let place = |change: &dyn Fn(&mut EndpointSettings)| {
        let mut settings = script("true");
        change(&mut settings);
        let executor = EndpointExecutor::new([endpoint(settings)]);
        executor.provenance(&descriptor(json!({}))).place.unwrap()
    };
    let text = crate::harness::text;
    let first = place(&|_| {});
    assert_eq!(first, place(&|settings| settings.prefix = "other".to_owned()));
    for other in [
        place(&|settings| settings.command.program = text("bash")),
        place(&|settings| settings.command.args.push(text("more"))),
        place(&|settings| settings.command.cwd = Some(text("/"))),
        place(&|settings| drop(settings.command.env.insert("A".to_owned(), text("b")))),
    ] {
        assert_ne!(first, other);
    }
}
