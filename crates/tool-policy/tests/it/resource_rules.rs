//! Rules about resources: they hold for every spelling of a URI.

use std::sync::Arc;

use proptest::prelude::*;
use raw_json::RawJson;
use serde_json::{Value, json};
use tool_core::{Body, Caller, Feature, Invoke, Layer, Outcome, Pattern, Reply, Target};
use tool_policy::{AdmissionLayer, ApprovalRules, Rules};
use tool_runtime::TokioClock;
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool, call, file_readers, file_spelling};

/// Makes a resource of the server `files`: one of a template, or a listed one.
fn resource(feature: Feature, listed: &str, uri: &str) -> Target {
    let mut tool = TestTool::new(&format!("files__{listed}"));
    tool.descriptor.feature = feature;
    tool.descriptor.uri = Some(listed.into());
    Target::Resource {
        resource: tool.build(ScriptedExecutor::new([])),
        uri: uri.into(),
    }
}

fn of_template(uri: &str) -> Target {
    resource(Feature::ResourceTemplate, "file:{+path}", uri)
}

fn rule(pattern: &str) -> Vec<Pattern> {
    vec![Pattern::new(pattern)]
}

fn blocked(pattern: &str) -> Rules {
    Rules::default().with_blocklist(rule(pattern))
}

fn allowed(pattern: &str) -> Rules {
    Rules::default().with_allowlist(rule(pattern))
}

fn may_read(rules: &Rules, uri: &str) -> bool {
    rules.admit_call(&of_template(uri), &Caller::new("ann")).is_ok()
}

/// Asserts that every kind of rule with this pattern refuses the URI.
fn assert_refused(pattern: &str, uri: &str) {
    assert!(!may_read(&blocked(pattern), uri), "blocklist: {uri:?}");
    let guarded =
        Rules::default().with_required_permissions(vec![(Pattern::new(pattern), vec!["read".to_owned()])]);
    assert!(!may_read(&guarded, uri), "permission: {uri:?}");
    assert!(
        !guarded.needs_no_permission(&of_template(uri)),
        "is_open: {uri:?}"
    );
    let approval = ApprovalRules::default().with_required(rule(pattern));
    let asking = Rules::default().with_approval(approval);
    assert!(
        asking
            .approval_reason(&of_template(uri), &Caller::new("ada"))
            .is_some(),
        "approval: {uri:?}"
    );
}

#[test]
fn a_file_is_known_in_every_spelling() {
    for uri in [
        "file:///secret/b.txt",
        "file:/secret/b.txt",
        "file:secret/b.txt",
        "file:////secret/b.txt",
        "file://localhost/secret/b.txt",
        "file://127.0.0.1/secret/b.txt",
        "file://127.1/secret/b.txt",
        "file://[::1]/secret/b.txt",
        "file://elsewhere/secret/b.txt",
        "file://secret/b.txt",
        "FILE://LOCALHOST/secret/b.txt",
        "file:\\\\\\secret\\b.txt",
        "file:///secret%5cb.txt",
        "file:///secret%2fb.txt",
        "file:///x/%2e%2e/secret/b.txt",
        "file:///x/..%c0%afsecret/b.txt",
        "file:///%u0073ecret/b.txt",
        "file:///secret/b.txt?x",
        "file:///secret/b.txt#x",
        "file:///secret/b.txt;p",
        "file:///secret;p/b.txt",
        "file:///secret/b.txt%00.png",
        "file:///secret/b.txt%0a.png",
        "file:///secret/b.txt/",
        "file:///secret./b.txt. ",
        "file:///secret/b.txt::$DATA",
        "file:///SECRET/B.txt",
        "file:///sec\tret/b.txt",
        "fi\nle:///secret/b.txt",
        " file:///secret/b.txt\u{0}",
        "file:///\u{ff53}ecret/b.txt",
        "file:///sec\u{200b}ret/b.txt",
        "file:///x/\u{ff0e}\u{ff0e}/secret/b.txt",
        "file:///secret/b%25252etxt",
        "file:///a?/../../secret/b.txt",
    ] {
        for pattern in [
            "files__file:///secret/b.txt",
            "files__file:/secret/b.txt",
            "files__FILE://LocalHost/secret/b%2etxt",
            "*__file:///secret/*",
            "*/secret/b.txt",
            "files__file:*b.txt",
        ] {
            assert_refused(pattern, uri);
        }
        assert!(!may_read(&allowed("files__file:///open/*"), uri), "{uri:?}");
    }
}

#[test]
fn other_resources_are_known_in_every_spelling() {
    for (pattern, uri) in [
        ("files__demo://Host/a", "DEMO://hOST/a"),
        ("files__demo://host/a", "demo://u:p@host/a"),
        ("files__demo://host/a", "demo://host:/a"),
        ("files__demo://host/a", "demo://host./a"),
        ("files__demo:///a", "demo:/a"),
        ("files__demo:///a", "demo://anything/a"),
        ("files__https://h.example/a", "https://h.example:443/a"),
        ("files__https://h.example/a", "https:h.example/a"),
        ("files__https://h.example/a", "https:\\\\h.example\\a"),
        (
            "files__https://b\u{fc}cher.example/*",
            "https://xn--bcher-kva.example/a",
        ),
        (
            "files__https://xn--bcher-kva.example/*",
            "https://B\u{dc}CHER.example/a",
        ),
        ("files__http://localhost/*", "http://[::1]/a"),
        ("files__http://127.0.0.1/*", "http://2130706433/a"),
        ("files__demo://x/caf\u{e9}", "demo://x/cafe\u{301}"),
        ("files__demo://x/a b", "demo://x/a+b"),
    ] {
        assert_refused(pattern, uri);
    }
}

#[test]
fn what_is_another_thing_passes() {
    let others = [
        ("files__file:///secret/*", "file:///open/a"),
        ("files__file:///secret/*", "file:///secrets/a"),
        ("files__file:///secret/*", "file://localhost/open/a%20b?x=1#y"),
        ("files__file:///secret/b.txt", "file:///secret/b.txt.bak"),
        ("other__file:///secret/*", "file:///secret/a"),
        ("files__db://users/*", "db://orders/rows"),
        ("files__https://a.example/*", "https://b.example/x"),
    ];
    for (pattern, uri) in others {
        assert!(may_read(&blocked(pattern), uri), "{pattern} {uri}");
    }
    for (pattern, uri) in [
        ("files__file:///open/*", "file:///open/a"),
        ("files__file:///open/*", "file:///open/"),
        ("files__file:///open/*", "file:///open/a%20b.txt."),
        ("files__file:///my%20dir/*", "file:///my%20dir/a"),
        ("files__file://localhost/open/*", "file://localhost/open/a"),
        ("files__db://rows?limit=*", "db://rows?limit=3"),
        ("files__db://017/*", "db://017/x"),
        ("files__demo://Host:80/*", "demo://Host:80/x;v=1#y"),
        ("files__*", "box:x"),
    ] {
        assert!(may_read(&allowed(pattern), uri), "{pattern} {uri}");
    }
}

#[test]
fn an_allow_list_takes_only_what_every_reader_takes_for_allowed() {
    for (pattern, uri) in [
        ("files__file:///open/*", "file:///open/../secret/a"),
        ("files__file:///open/*", "file:///open/..%2f..%2fsecret/a"),
        ("files__file:///open/*", "file:///open/.. /secret/a"),
        ("files__file:///open/*", "file:///open/..;/secret/a"),
        (
            "files__file:///open/*",
            "file:///open/x/../../secret/b?/../../../open/y",
        ),
        ("files__file:///open/*", "file:/open/a"),
        ("files__db://rows?limit=*", "db://rows"),
        ("files__file:///open/*.txt", "file:///open/key%00.txt"),
        ("files__file:///open/*.txt", "file:///open/key?a.txt"),
        ("files__file:///open/%2a", "file:///open/x"),
    ] {
        assert!(!may_read(&allowed(pattern), uri), "{pattern} {uri}");
    }
}

#[test]
fn a_list_hides_what_a_server_spells_in_another_way() {
    let rules = blocked("files__file:///secret/*");
    for feature in [Feature::Resource, Feature::ResourceTemplate] {
        for (listed, is_shown) in [
            ("file:/secret/a", false),
            ("file://localhost/secret/{name}", false),
            ("file:/open/a", true),
        ] {
            let target = resource(feature, listed, listed);
            let shown = rules.admit(target.tool(), &Caller::new("ann")).is_ok();
            assert_eq!(shown, is_shown, "{feature:?} {listed}");
        }
    }
}

/// Returns the values that a client receives when a server completes `{+path}` of this template with these values.
fn completed(rules: &Rules, template: &str, values: &[&str]) -> Value {
    let result = json!({"completion": {"values": values, "total": values.len(), "hasMore": false}});
    let script = ScriptedExecutor::new([ScriptStep::Reply(Reply::result(RawJson::from(result), false))]);
    let mut tool = TestTool::new(&format!("files__{template}"));
    tool.descriptor.feature = Feature::ResourceTemplate;
    tool.descriptor.uri = Some(template.into());
    let tool = tool.build(script.clone());
    let arguments =
        json!({"argument": {"name": "path", "value": ""}, "context": {"arguments": {"top": "secret"}}});
    let mut cx = call(Arc::clone(&tool), arguments, Arc::new(TokioClock::new()));
    cx.target = Target::Completion(tool);
    cx.origin.caller = Arc::new(Caller::new("ann"));
    let layer = AdmissionLayer::new(Arc::new(rules.clone())).layer(script);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime starts");
    let outcome = runtime
        .block_on(layer.invoke(&mut cx))
        .expect("the server answers");
    let Outcome::Reply(Reply {
        body: Body::Result(result),
        ..
    }) = outcome
    else {
        panic!("a completion is a result");
    };
    serde_json::from_str::<Value>(result.as_str()).expect("it is JSON")["completion"].clone()
}

#[test]
fn a_completion_names_nothing_that_may_not_be_read() {
    let guarded = Rules::default().with_required_permissions(vec![(
        Pattern::new("files__file:///secret/*"),
        vec!["read".to_owned()],
    )]);
    for rules in [blocked("files__file:///secret/*"), guarded] {
        let values = [
            "secret/key",
            "open/a",
            "/secret/key",
            "open/../secret/x",
            "%73ecret/x",
            "file:/secret/x",
            "file:///open/b",
        ];
        assert_eq!(
            completed(&rules, "file:///{+path}", &values),
            json!({"values": ["open/a", "file:///open/b"], "hasMore": false})
        );
        let none = json!({"values": [], "hasMore": false});
        assert_eq!(completed(&rules, "file:///{top}/{path}", &["key"]), none);
        assert_eq!(completed(&rules, "file://{/top,path}", &["key"]), none);
    }
    let all = json!({"values": ["open/a"], "total": 1, "hasMore": false});
    assert_eq!(
        completed(
            &blocked("files__file:///secret/*"),
            "file:///{+path}",
            &["open/a"]
        ),
        all
    );
    assert_eq!(
        completed(&allowed("files__file:///{+path}"), "file:///{+path}", &["x"])["values"],
        json!([])
    );
}

proptest! {
    #[test]
    fn a_completion_names_no_forbidden_file_in_any_spelling(choices in prop::collection::vec(any::<u8>(), 100)) {
        let uri = file_spelling("/secret/key.txt", &choices);
        let is_read = |uri: &str| file_readers()
            .iter()
            .any(|(_, read)| read(uri).is_some_and(|path| path.starts_with("/secret/")));
        let value = uri.split_once(':').map_or("", |(_, rest)| rest);
        let rules = blocked("files__file:///secret/*");
        for (template, value) in [("file:{+path}", value), ("{+path}", &uri)] {
            if is_read(&template.replace("{+path}", value)) {
                prop_assert_eq!(&completed(&rules, template, &[value])["values"], &json!([]));
            }
        }
    }

    #[test]
    fn what_any_reader_takes_for_a_forbidden_file_is_refused(choices in prop::collection::vec(any::<u8>(), 100)) {
        let uri = file_spelling("/secret/key.txt", &choices);
        let is_read = file_readers()
            .iter()
            .any(|(_, read)| read(&uri).is_some_and(|path| path == "/secret/key.txt" || path.starts_with("/secret/")));
        if is_read {
            assert_refused("files__file:///secret/*", &uri);
        }
    }

    #[test]
    fn what_any_reader_takes_for_another_file_is_not_allowed(choices in prop::collection::vec(any::<u8>(), 140)) {
        let path = ["/open/x/../key.txt", "/open/../secret/key.txt", "/open/./key.txt"][usize::from(choices[0]) % 3];
        let uri = file_spelling(path, &choices);
        let leaves = |path: Option<String>| path.is_some_and(|path| !path.starts_with("/open/") && path != "/open");
        if file_readers().iter().any(|(_, read)| leaves(read(&uri))) {
            prop_assert!(!may_read(&allowed("files__file:///open/*"), &uri), "{uri:?}");
        }
    }
}
