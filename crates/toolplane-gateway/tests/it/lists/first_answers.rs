//! Answers of an earlier run, which clients get until the lists are known.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{sync::watch, time::timeout};
use toolplane::{
    Toolplane,
    core::{BoxFuture, Catalogue, Feature, Source, SourceState, SourceStatus},
    manifest::{Configuration, GatewayMode},
};
use toolplane_gateway::{FirstAnswers, Gateway, GatewayOptions};

use crate::support::{BehaviorExecutor, Client, Http, MODERN, behavior_tool};

const CHANGED: &str = "notifications/tools/list_changed";

/// A server whose list was kept by an earlier run, and is read when the test lets it.
struct KeptServer {
    tools: Vec<&'static str>,
    may_read: watch::Sender<bool>,
    n_recalls: AtomicUsize,
    catalogue: watch::Sender<Arc<Catalogue>>,
}

impl KeptServer {
    fn new(tools: &[&'static str]) -> Arc<Self> {
        Arc::new(Self {
            tools: tools.to_vec(),
            may_read: watch::Sender::default(),
            n_recalls: AtomicUsize::new(0),
            catalogue: watch::Sender::default(),
        })
    }

    fn n_recalls(&self) -> usize {
        self.n_recalls.load(Ordering::SeqCst)
    }
}

impl Source for KeptServer {
    fn name(&self) -> &'static str {
        "kept"
    }

    fn snapshot(&self) -> Arc<Catalogue> {
        self.catalogue.borrow().clone()
    }

    fn load(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn recall(&self) -> BoxFuture<'_, ()> {
        self.n_recalls.fetch_add(1, Ordering::SeqCst);
        let mut may_read = self.may_read.subscribe();
        Box::pin(async move {
            let _ = may_read.wait_for(|may_read| *may_read).await;
            let tools = self.tools.iter().map(|name| Arc::new(behavior_tool(name)));
            let mut catalogue = Catalogue::new(1, tools.collect());
            catalogue.is_kept = true;
            self.catalogue.send_replace(Arc::new(catalogue));
        })
    }

    fn changed(&self, seen: u64) -> BoxFuture<'_, ()> {
        let mut catalogue = self.catalogue.subscribe();
        Box::pin(async move {
            let _ = catalogue.wait_for(|catalogue| catalogue.revision != seen).await;
        })
    }

    fn may_hold(&self, _: Feature, name: &str) -> bool {
        self.catalogue.borrow().revision == 0 && name.starts_with("kept")
    }

    fn status(&self) -> SourceStatus {
        SourceStatus::new(SourceState::NotStarted)
    }

    fn instructions(&self) -> Option<String> {
        (self.catalogue.borrow().revision > 0).then(|| "Be kind.".to_owned())
    }
}

fn plane(server: &Arc<KeptServer>) -> Toolplane {
    let builder = Toolplane::builder()
        .executor(Arc::new(BehaviorExecutor::default()))
        .tool(behavior_tool("own"))
        .source(server.clone());
    builder.build().expect("it can be set up")
}

fn gateway(server: &Arc<KeptServer>, answers: &FirstAnswers) -> Gateway {
    let options = GatewayOptions::default().first_answers(answers.clone());
    Gateway::new(plane(server), options)
}

/// Returns the answers of a run with these tools, as they are read from where they were kept.
async fn answers_of(tools: &[&'static str], principal: &str) -> FirstAnswers {
    let server = KeptServer::new(tools);
    server.may_read.send_replace(true);
    let gateway = Gateway::from(plane(&server));
    assert_eq!(gateway.first_answers(principal), None, "the lists are not known");
    gateway.plane().recall().await;
    let answers = gateway.first_answers(principal).expect("known");
    let read = FirstAnswers::from_json(answers.to_json().as_str());
    assert_eq!(read.as_ref(), Some(&answers));
    answers
}

fn names(list: &Value) -> Vec<&str> {
    let tools = list["result"]["tools"].as_array().expect("a list");
    let names = tools.iter().map(|tool| tool["name"].as_str().expect("a name"));
    names.collect()
}

#[tokio::test(start_paused = true)]
async fn clients_of_both_eras_are_answered_before_the_lists_are_known() {
    let answers = answers_of(&["kept__a", "kept__b"], "local").await;
    let now = KeptServer::new(&["kept__a", "kept__b"]);
    let gateway = gateway(&now, &answers);
    let mut client = Client::on(gateway.clone());
    assert!(client.initialize("{}").await.contains("Be kind."));
    let early = client.result("tools/list", "").await;
    let mut modern = Client::on(gateway);
    let discovered = modern.ask("server/discover", MODERN).await;
    assert!(discovered.contains("Be kind."), "{discovered}");
    let early_modern = modern.result("tools/list", MODERN).await;
    assert_eq!(now.n_recalls(), 0, "nothing needed the lists");
    now.may_read.send_replace(true);
    client
        .value("tools/call", r#""name":"kept__b","arguments":{}"#)
        .await;
    assert_eq!(now.n_recalls(), 1);
    assert_eq!(client.result("tools/list", "").await, early);
    assert_eq!(modern.result("tools/list", MODERN).await, early_modern);
    let list: Value = serde_json::from_str(&early).expect("JSON");
    assert_eq!(names(&json!({ "result": list })), ["kept__a", "kept__b", "own"]);
    // The tools are the same, so nobody is notified.
    let notified = timeout(Duration::from_secs(60), client.receive()).await;
    assert!(notified.is_err(), "{notified:?}");
}

#[tokio::test(start_paused = true)]
async fn whatever_is_no_first_answer_waits_for_the_lists() {
    let answers = answers_of(&["kept__a"], "local").await;
    let requests = [
        ("tools/call", r#""name":"kept__a","arguments":{}"#.to_owned()),
        ("tools/list", r#""cursor":"after.a""#.to_owned()),
        ("prompts/list", String::new()),
        ("resources/list", String::new()),
        (
            "completion/complete",
            r#""ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}"#.to_owned(),
        ),
    ];
    for (method, params) in requests {
        let now = KeptServer::new(&["kept__a"]);
        let mut client = Client::on(gateway(&now, &answers));
        client.initialize("{}").await;
        client
            .send(&format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#
            ))
            .await;
        let early = timeout(Duration::from_secs(1), client.receive()).await;
        assert!(early.is_err(), "{method}: {early:?}");
        assert_eq!(now.n_recalls(), 1, "{method}");
        now.may_read.send_replace(true);
        assert!(client.receive().await.contains(r#""id":1"#), "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_is_notified_if_it_was_answered_other_tools() {
    let answers = answers_of(&["kept__a", "kept__gone"], "local").await;
    let now = KeptServer::new(&["kept__a"]);
    let gateway = gateway(&now, &answers);
    let mut client = Client::on(gateway.clone());
    client.initialize("{}").await;
    let early = client.value("tools/list", "").await;
    assert_eq!(names(&early), ["kept__a", "kept__gone", "own"]);
    now.may_read.send_replace(true);
    gateway.plane().recall().await;
    assert!(client.receive().await.contains(CHANGED));
    assert_eq!(names(&client.value("tools/list", "").await), ["kept__a", "own"]);
    // A tool that is gone is not called.
    let gone = client
        .value("tools/call", r#""name":"kept__gone","arguments":{}"#)
        .await;
    assert_eq!(gone["error"]["code"], json!(-32602), "{gone}");
    let again = timeout(Duration::from_secs(60), client.receive()).await;
    assert!(again.is_err(), "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn a_subscription_to_changes_is_not_told_of_the_lists_becoming_known() {
    let answers = answers_of(&["kept__a"], "local").await;
    let now = KeptServer::new(&["kept__a"]);
    let gateway = gateway(&now, &answers);
    let mut client = Client::on(gateway.clone());
    client.value("tools/list", MODERN).await;
    let listen = format!(r#""notifications":{{"toolsListChanged":true,"promptsListChanged":true}},{MODERN}"#);
    client
        .send(&format!(
            r#"{{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{{{listen}}}}}"#
        ))
        .await;
    now.may_read.send_replace(true);
    assert!(client.receive().await.contains("acknowledged"));
    let notified = timeout(Duration::from_secs(60), client.receive()).await;
    assert!(notified.is_err(), "{notified:?}");
}

#[tokio::test(start_paused = true)]
async fn another_principal_waits_for_its_own_list() {
    let answers = answers_of(&["kept__a", "kept__gone"], "ada").await;
    let now = KeptServer::new(&["kept__a"]);
    let http = Http::on(&gateway(&now, &answers));
    let list = async |principal: &str| {
        let headers = [("x-principal", principal)];
        http.legacy_with(&headers, "tools/list", "").await
    };
    assert_eq!(names(&list("ada").await), ["kept__a", "kept__gone", "own"]);
    let early = timeout(Duration::from_secs(1), list("bob")).await;
    assert!(early.is_err(), "{early:?}");
    now.may_read.send_replace(true);
    assert_eq!(names(&list("bob").await), ["kept__a", "own"]);
    assert_eq!(names(&list("ada").await), ["kept__a", "own"]);
}

/// Answers depend on more than the principal there, or are not known.
#[tokio::test(start_paused = true)]
async fn there_are_no_answers_to_keep_with_authentication_or_a_missing_list() {
    let mut configuration = Configuration::default();
    configuration.gateway.auth = toolplane::manifest::AuthenticationSpec::Tokens;
    let builder = Toolplane::builder()
        .configuration(configuration)
        .executor(Arc::new(BehaviorExecutor::default()))
        .tool(behavior_tool("own"));
    let gateway = Gateway::from(builder.build().expect("it can be set up"));
    gateway.plane().recall().await;
    assert!(gateway.plane().requires_authentication());
    assert_eq!(gateway.first_answers("local"), None);
    let server = KeptServer::new(&[]);
    server.may_read.send_replace(true);
    let resolver = GatewayOptions::default().caller_resolver(|_| Arc::new(toolplane::core::Caller::new("x")));
    let gateway = Gateway::new(plane(&server), resolver);
    gateway.plane().recall().await;
    assert_eq!(gateway.first_answers("local"), None);
}

/// The answers are what a client gets in the mode of the gateway, and no more than one page.
#[tokio::test(start_paused = true)]
async fn answers_are_those_of_the_mode_and_one_page() {
    let server = KeptServer::new(&["kept__a", "kept__b"]);
    server.may_read.send_replace(true);
    let options = GatewayOptions::default().mode(GatewayMode::Search).page_size(2);
    let gateway = Gateway::new(plane(&server), options);
    gateway.plane().recall().await;
    let answers = gateway.first_answers("local").expect("known").to_json();
    let kept: Value = serde_json::from_str(answers.as_str()).expect("JSON");
    let page = &kept["page"];
    assert_eq!(names(&json!({ "result": page })), ["tool_call", "tool_describe"]);
    assert_eq!(page["nextCursor"], json!("after.tool_describe"));
    let list = Client::on(gateway).value("tools/list", MODERN).await;
    assert_eq!(list["result"]["tools"], page["tools"]);
}
