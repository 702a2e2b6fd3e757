//! Prompts, resources and completions.

use std::sync::Arc;

use serde_json::json;
use toolplane::{Toolplane, core::Feature, manifest::Configuration};
use toolplane_gateway::GatewayOptions;

use crate::support::{BehaviorExecutor, ChangingSource, Client, Http, MODERN, raw};

const OTHERS: [(Feature, &str); 7] = [
    (Feature::Prompt, "greet"),
    (Feature::Prompt, "broken"),
    (Feature::Resource, "test://a"),
    (Feature::Resource, "test://gone"),
    (Feature::Resource, "test://modern"),
    (Feature::ResourceTemplate, "test://t/{id}"),
    (Feature::ResourceTemplate, "test://broken/{id}"),
];

fn plane(configuration: Configuration) -> (Toolplane, Arc<ChangingSource>) {
    let source = ChangingSource::new(&[]);
    source.set_others(&OTHERS);
    let builder = Toolplane::builder()
        .configuration(configuration)
        .executor(Arc::new(BehaviorExecutor::default()))
        .source(source.clone());
    (builder.build().expect("it can be set up"), source)
}

fn client() -> Client {
    Client::new(plane(Configuration::default()).0)
}

#[tokio::test]
async fn every_list_has_its_own_member() {
    let mut client = client();
    for (method, list) in [
        (
            "prompts/list",
            r#""prompts":[{"name":"broken","arguments":[],"x":1e2},{"name":"greet","arguments":[],"x":1e2}]"#,
        ),
        (
            "resources/list",
            r#""resources":[{"uri":"test://a","name":"n","x":1e2},{"uri":"test://gone","name":"n","x":1e2},{"uri":"test://modern","name":"n","x":1e2}]"#,
        ),
        (
            "resources/templates/list",
            r#""resourceTemplates":[{"uriTemplate":"test://broken/{id}","name":"n","x":1e2},{"uriTemplate":"test://t/{id}","name":"n","x":1e2}]"#,
        ),
        ("tools/list", r#""tools":[]"#),
    ] {
        assert_eq!(client.result(method, "").await, format!("{{{list}}}"), "{method}");
        assert_eq!(
            client.result(method, MODERN).await,
            format!(r#"{{"resultType":"complete",{list},"ttlMs":0,"cacheScope":"private"}}"#),
            "{method}"
        );
    }
}

#[tokio::test]
async fn lists_of_all_kinds_come_in_pages() {
    let mut options = GatewayOptions::default();
    options.page_size = 1;
    let mut client = Client::with(plane(Configuration::default()).0, options);
    for (method, list, count) in [
        ("prompts/list", "prompts", 2),
        ("resources/list", "resources", 3),
        ("resources/templates/list", "resourceTemplates", 2),
    ] {
        let (mut pages, mut cursor) = (Vec::new(), String::new());
        loop {
            let answer = client.value(method, &cursor).await;
            pages.push(answer["result"][list].clone());
            let Some(next) = answer["result"].get("nextCursor") else {
                break;
            };
            cursor = format!(r#""cursor":{next}"#);
        }
        assert_eq!(pages.len(), count, "{method}");
        assert!(
            pages
                .iter()
                .all(|page| page.as_array().is_some_and(|page| page.len() == 1))
        );
        pages.dedup();
        assert_eq!(pages.len(), count, "{method}");
    }
}

#[tokio::test]
async fn results_keep_their_bytes() {
    let mut client = client();
    for (method, params, legacy, modern) in [
        (
            "prompts/get",
            r#""name":"greet","arguments":{"who":"x"}"#,
            r#"{ "messages":[],"of":"greet","given":{"who":"x"},"n":1e2 }"#,
            r#"{"resultType":"complete", "messages":[],"of":"greet","given":{"who":"x"},"n":1e2 }"#,
        ),
        (
            "prompts/get",
            r#""name":"greet","arguments":null"#,
            r#"{ "messages":[],"of":"greet","given":{},"n":1e2 }"#,
            r#"{"resultType":"complete", "messages":[],"of":"greet","given":{},"n":1e2 }"#,
        ),
        (
            "resources/read",
            r#""uri":"test://t/7""#,
            r#"{ "contents":[{"uri":"test://t/7","text":"","n":1e2}] }"#,
            r#"{"resultType":"complete", "contents":[{"uri":"test://t/7","text":"","n":1e2}] ,"ttlMs":0,"cacheScope":"private"}"#,
        ),
        (
            "resources/read",
            r#""uri":"test://modern""#,
            r#"{"resultType":"complete","contents":[],"ttlMs":7,"cacheScope":"public"}"#,
            // The server does not know who may read it here.
            r#"{"resultType":"complete","contents":[],"ttlMs":7,"cacheScope":"private"}"#,
        ),
        (
            "completion/complete",
            r#""ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"who","value":"a"},"context":{"arguments":{"n":"1"}}"#,
            r#"{"completion":{"values":["a"]},"given":{"argument":{"name":"who","value":"a"},"context":{"arguments":{"n":"1"}}}}"#,
            r#"{"resultType":"complete","completion":{"values":["a"]},"given":{"argument":{"name":"who","value":"a"},"context":{"arguments":{"n":"1"}}}}"#,
        ),
        (
            "completion/complete",
            r#""ref":{"type":"ref/resource","uri":"test://t/{id}"},"argument":{"name":"id","value":""}"#,
            r#"{"completion":{"values":["a"]},"given":{"argument":{"name":"id","value":""}}}"#,
            r#"{"resultType":"complete","completion":{"values":["a"]},"given":{"argument":{"name":"id","value":""}}}"#,
        ),
        // The server does not implement completions.
        (
            "completion/complete",
            r#""ref":{"type":"ref/resource","uri":"test://broken/{id}"},"argument":{"name":"id","value":""}"#,
            r#"{"completion":{"values":[]}}"#,
            r#"{"resultType":"complete","completion":{"values":[]}}"#,
        ),
    ] {
        assert_eq!(client.result(method, params).await, legacy, "{method} {params}");
        let now = client.result(method, &format!("{params},{MODERN}")).await;
        assert_eq!(now, modern, "{method} {params}");
    }
}

#[tokio::test]
async fn a_public_cache_scope_is_kept_where_clients_are_not_identified() {
    let http = Http::new(plane(Configuration::default()).0);
    for (principal, uri, scope) in [
        ("anonymous", "test://modern", "public"),
        ("anna", "test://modern", "private"),
        // The server sends no scope.
        ("anonymous", "test://a", "private"),
    ] {
        let answer = http.read(principal, uri).await;
        assert_eq!(
            answer["result"]["cacheScope"],
            json!(scope),
            "{principal} {uri}: {answer}"
        );
    }
}

#[tokio::test]
async fn failures_are_errors_of_the_protocol() {
    let mut client = client();
    for (method, params, legacy, modern, message) in [
        (
            "prompts/get",
            r#""name":"gree""#,
            -32602,
            -32602,
            "did you mean `greet`?",
        ),
        (
            "prompts/get",
            r#""name":7"#,
            -32602,
            -32602,
            "`name` must be a string",
        ),
        (
            "prompts/get",
            r#""name":"greet","arguments":7"#,
            -32602,
            -32602,
            "object",
        ),
        ("prompts/get", r#""name":"broken""#, -7, -7, "own words"),
        (
            "resources/read",
            r#""uri":"other://a""#,
            -32002,
            -32602,
            "there is no resource",
        ),
        ("resources/read", r#""uri":"test://gone""#, -32002, -32602, "gone"),
        // The code of an unknown method is about the hop to the server, and is not forwarded.
        (
            "resources/read",
            r#""uri":"test://t/unread""#,
            -32002,
            -32602,
            "no such method",
        ),
        ("resources/read", "", -32602, -32602, "`uri` must be a string"),
        ("completion/complete", "", -32602, -32602, "`ref` must be"),
        (
            "completion/complete",
            r#""ref":{"type":"ref/prompt","name":"greet"}"#,
            -32602,
            -32602,
            "`argument` must be an object",
        ),
        (
            "completion/complete",
            r#""ref":{"type":"ref/prompt","name":"none"},"argument":{}"#,
            -32602,
            -32602,
            "there is no prompt",
        ),
    ] {
        let separator = if params.is_empty() { "" } else { "," };
        for (params, code) in [
            (params.to_owned(), legacy),
            (format!("{params}{separator}{MODERN}"), modern),
        ] {
            let error = client.value(method, &params).await["error"].clone();
            assert_eq!(error["code"], json!(code), "{method} {params}: {error}");
            let said = error["message"].as_str().unwrap_or_default();
            assert!(said.contains(message), "{method} {params}: {error}");
        }
    }
    // Errors of a server are forwarded unchanged. Errors of the gateway have details for programs.
    let own = client.ask("prompts/get", r#""name":"broken""#).await;
    assert_eq!(
        raw(&own).get("error"),
        Some(raw(r#"{"code":-7,"message":"own words","data":{"n":1e2}}"#))
    );
    let ours = client.value("resources/read", r#""uri":"other://a""#).await;
    assert_eq!(ours["error"]["data"]["uri"], json!("other://a"));
    assert_eq!(
        ours["error"]["data"]["dev.toolplane/error"]["kind"],
        json!("not_found")
    );
}

#[tokio::test]
async fn policy_applies_to_prompts_and_resources() {
    let mut configuration = Configuration::default();
    configuration.policy.blocklist = ["broken", "s_test://gone", "s_test://t/secret"]
        .map(toolplane::core::Pattern::new)
        .to_vec();
    let mut client = Client::new(plane(configuration).0);
    assert!(!client.result("prompts/list", "").await.contains("broken"));
    assert!(!client.result("resources/list", "").await.contains("gone"));
    for (method, params) in [
        ("prompts/get", r#""name":"broken""#),
        ("resources/read", r#""uri":"test://gone""#),
        ("resources/read", r#""uri":"test://t/secret""#),
    ] {
        let error = client.value(method, params).await["error"].clone();
        assert_eq!(error["code"], json!(-32602), "{method} {params}: {error}");
        assert_eq!(
            error["data"]["dev.toolplane/error"]["kind"],
            json!("denied"),
            "{error}"
        );
    }
    client.result("resources/read", r#""uri":"test://t/open""#).await;
}

#[tokio::test(start_paused = true)]
async fn each_list_has_its_own_notification() {
    let (plane, source) = plane(Configuration::default());
    let mut client = Client::new(plane);
    client.initialize("{}").await;
    for method in [
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
    ] {
        client.result(method, "").await;
    }
    source.set_others(&OTHERS[..6]);
    let expected = r#"{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}"#;
    assert_eq!(client.receive().await, expected);
    client.result("resources/templates/list", "").await;
    source.set_others(&OTHERS[1..6]);
    let expected = r#"{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}"#;
    assert_eq!(client.receive().await, expected);
    // A modern subscription receives the changes it asked for, also if the client got its lists from an earlier process.
    let mut listener = Client::new({
        let builder = Toolplane::builder().executor(Arc::new(BehaviorExecutor::default()));
        builder.source(source.clone()).build().expect("it can be set up")
    });
    let filter = r#""notifications":{"promptsListChanged":true}"#;
    let first = listener
        .ask("subscriptions/listen", &format!("{filter},{MODERN}"))
        .await;
    assert!(first.contains(r#"{"promptsListChanged":true}"#), "{first}");
    source.set_others(&OTHERS);
    let news = listener.receive().await;
    assert!(news.contains("notifications/prompts/list_changed"), "{news}");
}

#[tokio::test]
async fn extra_params_are_forwarded_unchanged() {
    let mut client = client();
    for (method, params) in [
        ("prompts/get", r#""name":"greet","arguments":{}"#),
        ("resources/read", r#""uri":"test://a""#),
        (
            "completion/complete",
            r#""ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"a","value":""}"#,
        ),
    ] {
        for era in ["", MODERN] {
            let separator = if era.is_empty() { "" } else { "," };
            let params = format!(r#""vendor":{{ "n":1e2 }},{params},"z":null{separator}{era}"#);
            let result = client.result(method, &params).await;
            let beside = raw(&result).get("beside");
            assert_eq!(
                beside,
                Some(raw(r#"{"vendor":{ "n":1e2 },"z":null}"#)),
                "{method}: {result}"
            );
        }
    }
}
