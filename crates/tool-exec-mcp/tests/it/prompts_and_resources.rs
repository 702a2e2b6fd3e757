//! Prompts, resources and templates: which are offered, and how they are used.

use std::sync::Arc;

use raw_json::RawJson;
use serde_json::{Value, json};
use tool_core::{Arguments, Catalogue, Descriptor, ErrorKind, Feature, Pattern, Target, TraceContext};
use tool_exec_mcp::McpServer;

use crate::fixture::{Call, Fixture, LIMIT, NoSecrets, load, tool};

const PROMPTS: &str = r#"[{"name":"greet me", "title":"Greet", "arguments":[{"name":"who"}], "x":1e2}]"#;
const RESOURCES: &str = r#"[{"uri":"box:a","name":"a","mimeType":"text/x"},{"uri":"box:b","name":"b"}]"#;
const TEMPLATES: &str = r#"[{"uriTemplate":"box:{id}","name":"one","description":"One of them."}]"#;

/// A server that offers one tool, and something of every other feature.
fn everything() -> Fixture {
    let fixture = Fixture::new(&[tool("t")]);
    fixture.offers(&json!({"tools": {"listChanged": true}, "prompts": {}, "resources": {}}));
    fixture.has("prompts", PROMPTS);
    fixture.has("resources", RESOURCES);
    fixture.has("resourceTemplates", TEMPLATES);
    fixture
}

fn names(catalogue: &Catalogue) -> Vec<(Feature, &str)> {
    let all = catalogue.tools.iter().chain(&catalogue.others);
    all.map(|descriptor| (descriptor.feature, &*descriptor.name))
        .collect()
}

fn only(catalogue: &Catalogue, feature: Feature) -> Descriptor {
    let found = catalogue.others.iter().find(|other| other.feature == feature);
    (**found.unwrap()).clone()
}

#[tokio::test]
async fn prompts_and_resources_are_described_as_they_are_listed() {
    let fixture = everything();
    let server = fixture.server("");
    let catalogue = load(&server).await;
    assert_eq!(
        names(&catalogue),
        [
            (Feature::Tool, "box__t"),
            (Feature::Prompt, "box__greet_me"),
            (Feature::Resource, "box__box:a"),
            (Feature::Resource, "box__box:b"),
            (Feature::ResourceTemplate, "box__box:{id}"),
        ]
    );
    let prompt = only(&catalogue, Feature::Prompt);
    assert_eq!(prompt.uri, None);
    assert_eq!(prompt.title.as_deref(), Some("Greet"));
    let definition = prompt.definition.unwrap();
    assert_eq!(format!("[{definition}]"), PROMPTS, "its own bytes");
    let template = only(&catalogue, Feature::ResourceTemplate);
    assert_eq!(template.uri.as_deref(), Some("box:{id}"));
    assert_eq!(
        (template.title.as_deref(), template.description.as_str()),
        (Some("one"), "One of them.")
    );
    assert_eq!(template.input_schema.as_str(), r#"{"type":"object"}"#);
    assert!(catalogue.rejected.is_empty());
    server.shutdown().await;
}

#[tokio::test]
async fn only_lists_that_the_server_offers_are_requested() {
    let fixture = everything();
    fixture.offers(&json!({"prompts": {}}));
    let server = fixture.server("");
    let catalogue = load(&server).await;
    assert_eq!(names(&catalogue), [(Feature::Prompt, "box__greet_me")]);
    assert_eq!(fixture.notes("lists"), ["prompts/list"]);
    server.shutdown().await;
}

#[tokio::test]
async fn entries_without_a_name_are_rejected_with_the_reason() {
    let fixture = everything();
    fixture.has("prompts", r#"[{"title":"x"},{"name":"p"},{"name":"p"},7]"#);
    fixture.has("resources", r#"[{"name":"x"},{"uri":"box:a"},{"uri":"box:a"}]"#);
    fixture.has("resourceTemplates", r#"[{"uri":"box:a","name":"y"}]"#);
    let server = fixture.server("");
    let catalogue = load(&server).await;
    let rejected: Vec<_> = catalogue
        .rejected
        .iter()
        .map(|rejected| (rejected.feature, rejected.name.as_str(), rejected.reason.as_str()))
        .collect();
    assert_eq!(
        rejected,
        [
            (Feature::Prompt, "box__?", "it has no `name`"),
            (
                Feature::Prompt,
                "box__p",
                "another prompt of the server has this name"
            ),
            (Feature::Prompt, "box__?", "it has no `name`"),
            (Feature::Resource, "box__x", "it has no `uri`"),
            (
                Feature::Resource,
                "box__box:a",
                "another resource of the server has this URI"
            ),
            (Feature::ResourceTemplate, "box__y", "it has no `uriTemplate`"),
        ]
    );
    assert_eq!(catalogue.others.len(), 2);
    server.shutdown().await;
}

#[tokio::test]
async fn include_and_exclude_match_names_and_uris() {
    let fixture = everything();
    let mut settings = fixture.settings("");
    settings.include = Some(["greet*", "box:*"].map(Pattern::new).into());
    settings.exclude = vec![Pattern::new("box:b")];
    settings.rename = [("greet me", "hello"), ("box:a", "no")]
        .map(|(own, new)| (own.to_owned(), new.to_owned()))
        .into();
    let server = McpServer::new(settings, Arc::new(NoSecrets));
    let catalogue = load(&server).await;
    assert_eq!(
        names(&catalogue),
        [
            (Feature::Prompt, "box__greet_me"),
            (Feature::Resource, "box__box:a"),
            (Feature::ResourceTemplate, "box__box:{id}"),
        ],
        "only tools are renamed"
    );
    server.shutdown().await;
}

#[tokio::test]
async fn other_lists_than_that_of_tools_may_fail() {
    let fixture = everything();
    fixture.has("prompts", "7");
    fixture.has("resourceTemplates", "{}");
    let server = fixture.server("");
    let catalogue = load(&server).await;
    assert_eq!(
        names(&catalogue),
        [
            (Feature::Tool, "box__t"),
            (Feature::Resource, "box__box:a"),
            (Feature::Resource, "box__box:b"),
        ]
    );
    assert_eq!(server.source().status().state.as_str(), "ready");
    // Only the list that could not be read is tried again.
    fixture.has("prompts", PROMPTS);
    fixture.has("resourceTemplates", "[]");
    tokio::time::timeout(LIMIT, server.source().changed(catalogue.revision))
        .await
        .unwrap();
    let catalogue = server.source().snapshot();
    assert_eq!(names(&catalogue)[1], (Feature::Prompt, "box__greet_me"));
    let n_tool_lists = fixture
        .notes("lists")
        .iter()
        .filter(|list| *list == "tools/list")
        .count();
    assert_eq!(n_tool_lists, 1);
    server.shutdown().await;
}

#[tokio::test]
async fn a_list_that_never_comes_does_not_hold_up_the_tools() {
    let fixture = everything();
    fixture.has("prompts", "silence");
    let server = fixture.server("");
    let catalogue = load(&server).await;
    let features: Vec<_> = names(&catalogue)
        .into_iter()
        .map(|(feature, _)| feature)
        .collect();
    assert_eq!(features[0], Feature::Tool);
    assert!(!features.contains(&Feature::Prompt));
    assert_eq!(features.len(), 4);
    server.shutdown().await;
}

#[tokio::test]
async fn a_list_that_the_server_does_not_know_is_empty() {
    let fixture = everything();
    for key in ["resourceTemplates", "prompts"] {
        std::fs::remove_file(fixture.path(&format!("{key}.json"))).unwrap();
    }
    let server = fixture.server("");
    let catalogue = load(&server).await;
    let features: Vec<_> = names(&catalogue)
        .into_iter()
        .map(|(feature, _)| feature)
        .collect();
    assert_eq!(features, [Feature::Tool, Feature::Resource, Feature::Resource]);
    server.shutdown().await;
}

#[tokio::test]
async fn a_list_that_changed_is_read_again_and_the_others_stay() {
    let fixture = everything();
    let server = fixture.server("");
    let before = load(&server).await;
    let lists = fixture.notes("lists").len();
    for (kind, key, list, read) in [
        ("prompts", "prompts", "[]", vec!["prompts/list"]),
        (
            "resources",
            "resourceTemplates",
            "[]",
            vec!["resources/list", "resources/templates/list"],
        ),
    ] {
        let before = server.source().snapshot();
        let lists = fixture.notes("lists").len();
        fixture.has(key, list);
        let says = json!({"change": kind});
        Call::new(&server, "changes", says).make().await.unwrap();
        tokio::time::timeout(LIMIT, server.source().changed(before.revision))
            .await
            .unwrap();
        let mut seen = fixture.notes("lists").split_off(lists);
        seen.sort();
        assert_eq!(seen, read);
    }
    let after = server.source().snapshot();
    assert_eq!(names(&after).len(), 3, "{after:?}");
    assert!(Arc::ptr_eq(&before.tools[0], &after.tools[0]));
    let resource = |catalogue: &Catalogue| {
        catalogue
            .others
            .iter()
            .find(|other| &*other.name == "box__box:a")
            .cloned()
    };
    assert!(Arc::ptr_eq(
        &resource(&before).unwrap(),
        &resource(&after).unwrap()
    ));
    assert!(fixture.notes("lists").len() > lists);
    server.shutdown().await;
}

/// Returns a call of the server's first entry of this feature.
async fn of(server: &Arc<McpServer>, feature: Feature, arguments: Value) -> Call {
    Call::for_tool(server, only(&*load(server).await, feature), arguments)
}

#[tokio::test]
async fn requests_that_reach_the_server() {
    let fixture = everything();
    let server = fixture.server("");
    let argument = json!({"argument": {"name": "id", "value": "a"}, "context": {"arguments": {}}, "ref": 7});
    let uri: Arc<str> = "box:17".into();
    let read = |resource| Target::Resource { resource, uri };
    let mut without = of(&server, Feature::Prompt, json!({})).await.to(Target::Prompt);
    without.cx.arguments = Arc::new(Arguments::none());
    let mut spelled = of(&server, Feature::Prompt, json!({})).await.to(Target::Prompt);
    spelled.cx.arguments = Arc::new(Arguments::parse(r#"{ "who": "A" }"#).unwrap());
    let cases = [
        (
            spelled,
            "prompts/get",
            r#"{"name":"greet me","arguments":{ "who": "A" }}"#,
        ),
        (without, "prompts/get", r#"{"name":"greet me"}"#),
        (
            of(&server, Feature::Prompt, json!({})).await.to(Target::Prompt),
            "prompts/get",
            r#"{"name":"greet me","arguments":{}}"#,
        ),
        (
            of(&server, Feature::ResourceTemplate, json!({})).await.to(read),
            "resources/read",
            r#"{"uri":"box:17"}"#,
        ),
        (
            of(&server, Feature::ResourceTemplate, argument.clone())
                .await
                .to(Target::Completion),
            "completion/complete",
            r#"{"ref":{"type":"ref/resource","uri":"box:{id}"},"argument":{"name":"id","value":"a"},"context":{"arguments":{}}}"#,
        ),
        (
            of(&server, Feature::Prompt, argument)
                .await
                .to(Target::Completion),
            "completion/complete",
            r#"{"ref":{"type":"ref/prompt","name":"greet me"},"argument":{"name":"id","value":"a"},"context":{"arguments":{}}}"#,
        ),
    ];
    for (mut call, method, params) in cases {
        let reply = call.make().await.unwrap();
        assert_eq!(
            reply.raw().as_str(),
            format!(r#"{{"method":"{method}","params":{params},"isError":true}}"#)
        );
        assert!(!reply.is_error, "only tools fail in this way");
    }
    server.shutdown().await;
}

#[tokio::test]
async fn completions_do_not_lead_to_excluded_resources() {
    let fixture = everything();
    let given = r#"{"values":["open","secret","%73ecret-2","box:secret","box:open", 7],"total":6,"x":1e2}"#;
    fixture.has("completion", given);
    let complete = async |exclude: &[&str], feature, argument: Value| {
        let mut settings = fixture.settings("");
        settings.exclude = exclude.iter().map(|pattern| Pattern::new(*pattern)).collect();
        let server = McpServer::new(settings, Arc::new(NoSecrets));
        let call = of(&server, feature, json!({"argument": argument})).await;
        let reply = call.to(Target::Completion).make().await.unwrap();
        server.shutdown().await;
        reply.raw().get("completion").unwrap().as_str().to_owned()
    };
    let argument = json!({"name": "id", "value": ""});
    let (template, prompt) = (Feature::ResourceTemplate, Feature::Prompt);
    for (exclude, feature, expected) in [
        (
            &["box:secret*"][..],
            template,
            r#"{"values":["open","box:open"],"x":1e2}"#,
        ),
        (
            &["box:*n"],
            template,
            r#"{"values":["secret","%73ecret-2","box:secret"],"x":1e2}"#,
        ),
        (
            &["t"],
            template,
            r#"{"values":["open","secret","%73ecret-2","box:secret","box:open"],"x":1e2}"#,
        ),
        // The values of a prompt's argument are not URIs.
        (&["box:secret*"], prompt, given),
    ] {
        assert_eq!(
            complete(exclude, feature, argument.clone()).await,
            expected,
            "{exclude:?}"
        );
    }
}

/// `include`, `exclude`, the entry that a URI is read as, the URI, and whether it can be read.
type Case<'a> = (Option<&'a [&'a str]>, &'a [&'a str], Feature, &'a str, bool);

#[tokio::test]
async fn excluded_resources_cannot_be_read_by_uri() {
    let fixture = everything();
    let read = async |include: Option<&[&str]>, exclude: &[&str], feature, uri: &str| {
        let mut settings = fixture.settings("");
        let patterns = |list: &[&str]| list.iter().map(|pattern| Pattern::new(*pattern)).collect();
        settings.include = include.map(patterns);
        settings.exclude = patterns(exclude);
        let server = McpServer::new(settings, Arc::new(NoSecrets));
        let uri: Arc<str> = uri.into();
        let call = of(&server, feature, json!({})).await;
        let done = call
            .to(|resource| Target::Resource { resource, uri })
            .make()
            .await;
        server.shutdown().await;
        done.map(|_| ()).map_err(|error| error.kind())
    };
    let (resource, template) = (Feature::Resource, Feature::ResourceTemplate);
    let cases: [Case<'_>; 17] = [
        (None, &[], resource, "box:a", true),
        // An unlisted one, of the only server with this scheme.
        (None, &[], resource, "box:z", true),
        (None, &[], resource, "box:../z", true),
        (None, &["box:b"], resource, "box:a", true),
        (None, &["box:b"], resource, "box:b", false),
        (None, &["box:b"], template, "box:b", false),
        (None, &["box:b"], template, "box:c", true),
        (Some(&["box:a"]), &[], resource, "box:z", false),
        (Some(&["box:a", "box:z"]), &[], resource, "box:z", true),
        (Some(&["box:{id}"]), &[], template, "box:z", true),
        (Some(&["box:*"]), &["box:b"], template, "box:b", false),
        // A URI that a server may read as another one.
        (Some(&["box:*"]), &[], resource, "box:x/../b", false),
        (Some(&["box:*"]), &[], template, "box:%2E%2e/b", false),
        (None, &["box:b"], resource, "box:./b", false),
        (None, &["box:b"], resource, "box:%62", false),
        (None, &["box:b"], resource, "BOX:b#x", false),
        (None, &["box:b"], resource, "box:a%20b", true),
    ];
    for (include, exclude, feature, uri, is_read) in cases {
        let expected = if is_read { Ok(()) } else { Err(ErrorKind::NotFound) };
        let done = read(include, exclude, feature, uri).await;
        assert_eq!(done, expected, "{include:?} {exclude:?} {feature:?} {uri}");
    }
}

#[tokio::test]
async fn errors_keep_code_message_and_data() {
    let fixture = everything();
    let server = fixture.server("");
    let uri: Arc<str> = "box:none".into();
    let mut call = of(&server, Feature::Resource, json!({}))
        .await
        .to(|resource| Target::Resource { resource, uri });
    let error = call.make().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(
        error.detail().unwrap().as_str(),
        r#"{"code":-32002,"message":"not here","data":{ "uri":"box:none" }}"#
    );
    server.shutdown().await;
}

#[tokio::test]
async fn the_callers_meta_is_forwarded() {
    let fixture = everything();
    let server = fixture.server("");
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let trace = TraceContext::parse(parent, Some("a=b")).expect("it is one");
    let cases = [
        (r#"{"vendor/x": 1e2 }"#, None, Some(r#"{"vendor/x": 1e2 }"#)),
        ("{}", None, None),
        // Tokens and the like concern one hop.
        (
            r#"{"progressToken":7,"v":{"a":"\u0041"},"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/related-task":{"taskId":"1"}}"#,
            None,
            Some(r#"{"v":{"a":"\u0041"}}"#),
        ),
        (
            "{}",
            Some(&trace),
            Some(concat!(
                r#"{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","#,
                r#""tracestate":"a=b"}"#
            )),
        ),
        // An invalid trace is not forwarded, nor a state without one or beyond the limits.
        (
            r#"{"traceparent":"00-0-0-0\r\n","tracestate":"a=b","baggage":"u=1","v":1}"#,
            None,
            Some(r#"{"v":1}"#),
        ),
        (r#"{"tracestate":"a=b"}"#, None, None),
        (
            r#"{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","tracestate":"a=b\r\nx","v":1}"#,
            None,
            Some(r#"{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","v":1}"#),
        ),
        // The server's spans belong to the attempt, not to the caller's span.
        (
            r#"{"traceparent":"own", "v": 1}"#,
            Some(&trace),
            Some(concat!(
                r#"{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "v": 1,"#,
                r#""tracestate":"a=b"}"#
            )),
        ),
        // The caller's baggage is not forwarded.
        (r#"{"v":1,"baggage":"user=alice"}"#, None, Some(r#"{"v":1}"#)),
    ];
    let uri: Arc<str> = "box:a".into();
    let read = |resource| Target::Resource {
        resource,
        uri: uri.clone(),
    };
    for (meta, trace, expected) in cases {
        let calls = [
            Call::new(&server, "echo", json!({})),
            of(&server, Feature::Prompt, json!({})).await.to(Target::Prompt),
            of(&server, Feature::Prompt, json!({}))
                .await
                .to(Target::Completion),
            of(&server, Feature::Resource, json!({})).await.to(read),
        ];
        for mut call in calls {
            call.cx.extras.meta = Some(RawJson::parse(meta).unwrap());
            call.cx.trace = trace.cloned();
            let reply = call.make().await.unwrap();
            let params = reply.raw().get("params").unwrap_or(reply.raw().clone());
            let seen = params.get("_meta");
            assert_eq!(seen.as_ref().map(RawJson::as_str), expected, "{meta}");
        }
    }
    server.shutdown().await;
}

#[test]
fn any_server_may_have_a_resource() {
    let fixture = Fixture::new(&[]);
    let source = fixture.server("").source();
    assert!(source.may_hold(Feature::Resource, "file:///a"));
    assert!(source.may_hold(Feature::ResourceTemplate, "file:///{a}"));
    assert!(source.may_hold(Feature::Prompt, "box__p"));
    assert!(!source.may_hold(Feature::Prompt, "other__p"));
}

#[tokio::test]
async fn extra_params_reach_the_server_unchanged() {
    for mode in ["", "modern"] {
        let fixture = everything();
        let server = fixture.server(mode);
        let catalogue = load(&server).await;
        let prompt = only(&catalogue, Feature::Prompt);
        let calls = [
            Call::new(&server, "echo", json!({"a": 1})),
            Call::for_tool(&server, prompt.clone(), json!({"a": "1"})).to(Target::Prompt),
            Call::for_tool(&server, prompt, json!({"argument": {"name": "a", "value": ""}}))
                .to(Target::Completion),
        ];
        for mut call in calls {
            let beside = r#"{"vendor":{ "n":1e2 },"name":"other","ref":7,"_meta":{"x":1},"z":null}"#;
            call.cx.extras.extra_params = Some(RawJson::parse(beside).unwrap());
            let reply = call.make().await.unwrap();
            let params = reply.raw().get("params").unwrap_or(reply.raw().clone());
            let text = params.as_str();
            assert!(text.starts_with(r#"{"vendor":{ "n":1e2 },"z":null,"#), "{text}");
            let said = ["other", "ref\":7", "\"x\":1"];
            assert!(!said.iter().any(|said| text.contains(said)), "{text}");
        }
        server.shutdown().await;
    }
}
