//! Lists that do not wait for the slowest server. They name the missing servers, and clients are notified when those are ready.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{sync::watch, time::Instant};
use toolplane::{
    Toolplane,
    core::{BoxFuture, Catalogue, Feature, Source, SourceState, SourceStatus},
};
use toolplane_gateway::GatewayOptions;

use crate::support::{BehaviorExecutor, Client, MODERN, behavior_tool};

/// A server whose start hangs until the test ends it.
struct SlowServer {
    name: &'static str,
    catalogue: watch::Sender<Arc<Catalogue>>,
    end: watch::Sender<Option<Result<(), &'static str>>>,
}

impl SlowServer {
    fn new(name: &'static str) -> Arc<Self> {
        Arc::new(Self {
            name,
            catalogue: watch::Sender::default(),
            end: watch::Sender::default(),
        })
    }
}

impl Source for SlowServer {
    fn name(&self) -> &str {
        self.name
    }

    fn snapshot(&self) -> Arc<Catalogue> {
        self.catalogue.borrow().clone()
    }

    fn load(&self) -> BoxFuture<'_, ()> {
        let mut end = self.end.subscribe();
        Box::pin(async move {
            let end = *end.wait_for(Option::is_some).await.expect("it is there");
            if end == Some(Ok(())) {
                let tool = behavior_tool(&format!("{}__tool", self.name));
                let mut prompt = behavior_tool(&format!("{}__prompt", self.name));
                prompt.feature = Feature::Prompt;
                self.catalogue.send_replace(Arc::new({
                    let mut catalogue = Catalogue::default();
                    catalogue.revision = 1;
                    catalogue.tools = vec![Arc::new(tool)];
                    catalogue.others = vec![Arc::new(prompt)];
                    catalogue
                }));
            }
        })
    }

    fn changed(&self, seen: u64) -> BoxFuture<'_, ()> {
        let mut catalogue = self.catalogue.subscribe();
        Box::pin(async move {
            let _ = catalogue.wait_for(|catalogue| catalogue.revision != seen).await;
        })
    }

    fn may_hold(&self, _: Feature, name: &str) -> bool {
        name.starts_with(self.name)
    }

    fn status(&self) -> SourceStatus {
        SourceStatus::new(match *self.end.borrow() {
            None => SourceState::Starting,
            Some(Ok(())) => SourceState::Ready,
            Some(Err(reason)) => SourceState::Failed(reason.to_owned()),
        })
    }
}

const LISTS: [(&str, &str); 4] = [
    ("tools/list", "tools"),
    ("prompts/list", "prompts"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
];

fn client(servers: &[&Arc<SlowServer>], wait: Option<Duration>) -> Client {
    let mut builder = Toolplane::builder()
        .executor(Arc::new(BehaviorExecutor::default()))
        .tool(behavior_tool("own"));
    for server in servers {
        builder = builder.source((*server).clone());
    }
    let mut options = GatewayOptions::default();
    options.list_wait = wait.unwrap_or(options.list_wait);
    Client::with(builder.build().expect("it can be set up"), options)
}

fn missing(answer: &Value) -> &Value {
    &answer["result"]["_meta"]["dev.toolplane/missing"]
}

/// In both eras and for all lists: the limit of the wait, and the names of the missing servers.
#[tokio::test(start_paused = true)]
async fn a_list_names_missing_servers_in_both_eras() {
    for params in ["", MODERN] {
        for (method, key) in LISTS {
            let (hanging, failing) = (SlowServer::new("hanging"), SlowServer::new("failing"));
            failing.end.send_replace(Some(Err("no license")));
            let mut client = client(&[&hanging, &failing], None);
            let start = Instant::now();
            if params.is_empty() {
                client.initialize("{}").await;
            }
            let answer = client.value(method, params).await;
            assert_eq!(start.elapsed(), Duration::from_secs(4));
            let n_own = usize::from(key == "tools");
            assert_eq!(
                answer["result"][key].as_array().expect("a list").len(),
                n_own,
                "{answer}"
            );
            let expected = json!([
                {"server": "hanging", "state": "starting"},
                {"server": "failing", "state": "failed", "reason": "no license"},
            ]);
            assert_eq!(*missing(&answer), expected, "{answer}");
            client.value(method, params).await;
            assert_eq!(start.elapsed(), Duration::from_secs(4), "it had its time");
        }
    }
}

/// Receives the notifications of a server that has tools and prompts but no resources.
async fn list_changes(client: &mut Client, check: impl Fn(&Value)) {
    let mut methods = Vec::new();
    for _ in 0..2 {
        let news: Value = serde_json::from_str(&client.receive().await).expect("JSON");
        check(&news);
        methods.push(news["method"].as_str().expect("a notification").to_owned());
    }
    methods.sort();
    let expected = [
        "notifications/prompts/list_changed",
        "notifications/tools/list_changed",
    ];
    assert_eq!(methods, expected, "there are no resources");
}

#[tokio::test(start_paused = true)]
async fn legacy_clients_are_notified_when_a_missing_server_is_ready() {
    let server = SlowServer::new("slow");
    let mut client = client(&[&server], Some(Duration::ZERO));
    let start = Instant::now();
    client.initialize("{}").await;
    for (method, _) in LISTS {
        assert_eq!(
            *missing(&client.value(method, "").await),
            json!([{"server": "slow", "state": "starting"}])
        );
    }
    assert_eq!(start.elapsed(), Duration::ZERO, "nobody is to wait");
    server.end.send_replace(Some(Ok(())));
    list_changes(&mut client, |_| {}).await;
    let answer = client.value("tools/list", "").await;
    assert_eq!(answer["result"]["tools"][1]["name"], "slow__tool");
    assert!(
        answer["result"].get("_meta").is_none(),
        "nothing is missing: {answer}"
    );
}

/// Reasons hide paths, addresses and secrets, as errors of calls do.
#[tokio::test(start_paused = true)]
async fn reasons_of_failures_are_sanitized() {
    let reasons = [
        (
            "cannot run `/opt/tools/bin/server`: No such file or directory",
            "cannot run `[path]`: No such file or directory",
        ),
        (
            "cannot connect to http://10.1.2.3:8080/mcp?key=abc",
            "cannot connect to [internal address]",
        ),
        (
            "it ended:\u{1b}[2J open ~/.ssh/id_rsa\nAuthorization: Bearer abc.DEF-123",
            r"it ended:\u{1b}[2J open [path] Authorization: Bearer [redacted]",
        ),
    ];
    for (reason, told) in reasons {
        let server = SlowServer::new("failing");
        server.end.send_replace(Some(Err(reason)));
        let mut client = client(&[&server], Some(Duration::ZERO));
        let answer = client.value("tools/list", MODERN).await;
        let expected = json!([{"server": "failing", "state": "failed", "reason": told}]);
        assert_eq!(*missing(&answer), expected, "{answer}");
    }
}

/// A modern client receives the notification on its subscription.
#[tokio::test(start_paused = true)]
async fn modern_clients_are_notified_when_a_missing_server_is_ready() {
    let server = SlowServer::new("slow");
    let mut client = client(&[&server], Some(Duration::ZERO));
    let filter =
        r#""notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}"#;
    let acknowledged = client
        .ask("subscriptions/listen", &format!("{filter},{MODERN}"))
        .await;
    assert!(acknowledged.contains("acknowledged"), "{acknowledged}");
    let list = |id: u32, method: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{MODERN}}}}}"#)
    };
    for (id, (method, _)) in (10..).zip(LISTS) {
        client.send(&list(id, method)).await;
        let answer: Value = serde_json::from_str(&client.receive().await).expect("JSON");
        assert_eq!(
            *missing(&answer),
            json!([{"server": "slow", "state": "starting"}])
        );
    }
    server.end.send_replace(Some(Ok(())));
    list_changes(&mut client, |news| {
        let subscription = &news["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
        assert!(!subscription.is_null(), "{news}");
    })
    .await;
    client.send(&list(20, "tools/list")).await;
    let answer: Value = serde_json::from_str(&client.receive().await).expect("JSON");
    assert_eq!(answer["result"]["tools"][1]["name"], "slow__tool");
    assert!(missing(&answer).is_null(), "{answer}");
}
