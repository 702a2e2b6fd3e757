//! Which calls share a connection, and how long one is kept.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tool_core::{Caller, ClientKey, ErrorKind, ToolError};
use tool_exec_mcp::{Isolation, McpServer};

use crate::{
    client::{Client, asker, until},
    fixture::{Call, Fixture, LIMIT, NoSecrets, load},
    lifecycle::{ended, runs},
};

fn server(fixture: &Fixture, isolation: Isolation, most: usize) -> Arc<McpServer> {
    let mut settings = asker(fixture, "");
    settings.isolation = isolation;
    settings.max_connections = most;
    McpServer::new(settings, Arc::new(NoSecrets))
}

/// The process that a call reaches.
async fn reached(mut call: Call) -> Result<Value, ToolError> {
    let reply = call.make().await?;
    Ok(serde_json::from_str::<Value>(reply.raw().as_str()).unwrap()["pid"].clone())
}

async fn pid(call: Call) -> Value {
    reached(call).await.unwrap()
}

const ASKABLE: &str = r#"{"elicitation":{}}"#;

/// A call that runs until it is let go of, and the client that makes it.
async fn hold(
    client: &Arc<Client>,
    server: &Arc<McpServer>,
    fixture: &Fixture,
) -> tokio::task::JoinHandle<()> {
    let n = fixture.notes("held").len();
    let (client, server) = (client.clone(), server.clone());
    let calling = tokio::spawn(async move {
        let mut call = client.call(&server, "hold", json!({}));
        let executor = call.cx.tool().executor().clone();
        // Without a limit, which a test that moves the clock would pass.
        executor.invoke_boxed(&mut call.cx).await.unwrap();
    });
    until(|| fixture.notes("held").len() > n).await;
    calling
}

#[tokio::test]
async fn who_shares_with_whom() {
    let fixture = Fixture::new(&[]);
    // Of each isolation: whether these pairs reach one process.
    for (isolation, pairs) in [
        (Isolation::Auto, [true, false, true, true]),
        (Isolation::Shared, [true, true, true, true]),
        (Isolation::Session, [true, false, false, false]),
        (Isolation::Principal, [true, true, true, false]),
    ] {
        let server = server(&fixture, isolation, 16);
        let call = |client: &Arc<Client>| client.call(&server, "pid", json!({}));
        let (anna, otto) = (Client::session("anna", ASKABLE), Client::session("otto", ASKABLE));
        let mute = ["m", "n"].map(|name| Client::session(name, "{}"));
        let plain = |principal: &str| {
            let mut call = Call::new(&server, "pid", json!({}));
            call.cx.origin.caller = Arc::new(Caller::new(principal));
            call
        };
        let of_each = [
            (call(&anna), call(&anna)),
            (call(&anna), call(&otto)),
            (call(&mute[0]), call(&mute[1])),
            (plain("p"), plain("q")),
        ];
        let mut same = Vec::new();
        for (first, second) in of_each {
            same.push(pid(first).await == pid(second).await);
        }
        assert_eq!(same, pairs, "{isolation:?}");
        server.shutdown().await;
    }
}

#[tokio::test]
async fn a_session_is_known_also_if_it_can_be_asked_nothing() {
    let fixture = Fixture::new(&[]);
    let server = server(&fixture, Isolation::Session, 16);
    let mut reached = Vec::new();
    for name in ["anna", "otto", "anna"] {
        let mut call = Call::new(&server, "pid", json!({}));
        call.cx.origin.client = Some(ClientKey::Session(name.into()));
        reached.push(pid(call).await);
    }
    assert_eq!(reached[0], reached[2]);
    assert_ne!(reached[0], reached[1]);
    server.shutdown().await;
}

#[tokio::test]
async fn a_session_is_its_principals_whatever_it_is_called() {
    let fixture = Fixture::new(&[]);
    let server = server(&fixture, Isolation::Auto, 16);
    let mut reached = Vec::new();
    for principal in ["anna", "otto"] {
        let mut call = Client::session("s1", ASKABLE).call(&server, "pid", json!({}));
        call.cx.origin.caller = Arc::new(Caller::new(principal));
        reached.push(pid(call).await);
    }
    assert_ne!(reached[0], reached[1]);
    server.shutdown().await;
}

#[tokio::test]
async fn clients_that_declare_other_things_share_no_connection() {
    let fixture = Fixture::new(&[]);
    let server = server(&fixture, Isolation::Principal, 16);
    for declared in [ASKABLE, r#"{"roots":{}}"#] {
        let client = Client::of_principal("anna", declared).answers(9);
        pid(client.call(&server, "pid", json!({}))).await;
    }
    assert_eq!(server.n_dedicated_connections(), 2);
    server.shutdown().await;
}

#[tokio::test]
async fn beyond_the_bound_calls_share_or_are_refused() {
    let fixture = Fixture::new(&[]);
    for isolation in [Isolation::Auto, Isolation::Session] {
        let server = server(&fixture, isolation, 1);
        let (anna, otto) = (Client::session("anna", ASKABLE), Client::session("otto", ASKABLE));
        let held = hold(&anna, &server, &fixture).await;
        assert_eq!(server.n_dedicated_connections_in_use(), 1);
        let outcome = reached(otto.call(&server, "pid", json!({}))).await;
        if isolation == Isolation::Auto {
            outcome.unwrap();
            let answer = otto.clone().answers(1).asks(&server, "elicitation/create").await;
            assert_eq!(answer["error"]["code"], -32601, "nobody is asked there: {answer}");
        } else {
            let error = outcome.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Overloaded, "{error}");
        }
        assert_eq!(server.n_dedicated_connections(), 1);
        // One that nobody uses makes room.
        anna.call(&server, "release", json!({})).make().await.unwrap();
        held.await.unwrap();
        pid(otto.call(&server, "pid", json!({}))).await;
        assert_eq!(server.n_dedicated_connections(), 1);
        assert_eq!(server.n_dedicated_connections_in_use(), 0);
        server.shutdown().await;
    }
}

#[tokio::test]
async fn one_that_nobody_uses_is_closed_after_a_while() {
    let fixture = Fixture::new(&[]);
    let server = server(&fixture, Isolation::Auto, 16);
    let (anna, otto) = (Client::session("anna", ASKABLE), Client::session("otto", ASKABLE));
    let idle = pid(anna.call(&server, "pid", json!({}))).await;
    let held = hold(&otto, &server, &fixture).await;
    assert_eq!(server.n_dedicated_connections(), 2);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(301)).await;
    tokio::time::resume();
    until(|| server.n_dedicated_connections() == 1).await;
    ended(&idle.to_string()).await;
    // The other one is in use, and the first client gets another.
    otto.call(&server, "release", json!({})).make().await.unwrap();
    held.await.unwrap();
    assert_ne!(pid(anna.call(&server, "pid", json!({}))).await, idle);
    server.shutdown().await;
}

#[tokio::test]
async fn a_client_that_is_gone_takes_its_connection_along() {
    let fixture = Fixture::new(&[]);
    let server = server(&fixture, Isolation::Auto, 16);
    let client = Client::session("anna", ASKABLE);
    let gone = ClientKey::Session("anna".into());
    let held = hold(&client, &server, &fixture).await;
    server.release_client(&gone);
    assert_eq!(server.n_dedicated_connections(), 1, "a call runs");
    client.call(&server, "release", json!({})).make().await.unwrap();
    held.await.unwrap();
    let process = pid(client.call(&server, "pid", json!({}))).await;
    server.release_client(&ClientKey::Session("otto".into()));
    assert_eq!(server.n_dedicated_connections(), 1, "it is another's");
    server.release_client(&gone);
    assert_eq!(server.n_dedicated_connections(), 0);
    ended(&process.to_string()).await;
    server.shutdown().await;
}

#[tokio::test]
async fn one_that_died_is_opened_again_and_others_live() {
    let fixture = Fixture::new(&[]);
    let server = server(&fixture, Isolation::Auto, 16);
    let (anna, otto) = (Client::session("anna", ASKABLE), Client::session("otto", ASKABLE));
    let before = [
        pid(anna.call(&server, "pid", json!({}))).await,
        pid(otto.call(&server, "pid", json!({}))).await,
    ];
    anna.call(&server, "exit", json!({})).make().await.unwrap_err();
    assert_eq!(pid(otto.call(&server, "pid", json!({}))).await, before[1]);
    let again = async {
        loop {
            match reached(anna.call(&server, "pid", json!({}))).await {
                Ok(process) => return process,
                Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let process = tokio::time::timeout(LIMIT, again).await.unwrap();
    assert_ne!(process, before[0]);
    assert_eq!(server.n_dedicated_connections(), 2);
    server.shutdown().await;
}

#[tokio::test]
async fn many_calls_share_one_start() {
    let fixture = Fixture::new(&[]);
    let server = server(&fixture, Isolation::Auto, 16);
    let client = Client::session("anna", ASKABLE);
    let calls: Vec<_> = (0..16)
        .map(|_| pid(client.call(&server, "pid", json!({}))))
        .collect();
    let reached = futures_util::future::join_all(calls).await;
    assert!(
        reached.iter().all(|process| *process == reached[0]),
        "{reached:?}"
    );
    assert_eq!(
        fixture.notes("starts").len(),
        2,
        "the shared one and the client's"
    );
    server.shutdown().await;
}

#[tokio::test]
async fn shutdown_ends_all_of_them() {
    let fixture = Fixture::new(&[]);
    let server = server(&fixture, Isolation::Auto, 16);
    load(&server).await;
    for name in ["anna", "otto"] {
        pid(Client::session(name, ASKABLE).call(&server, "pid", json!({}))).await;
    }
    server.shutdown().await;
    for process in fixture.notes("starts") {
        assert!(!runs(&process), "{process} runs");
    }
    let client = Client::session("eve", ASKABLE);
    let error = reached(client.call(&server, "pid", json!({}))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(fixture.notes("starts").len(), 3, "none is started again");
}

/// How many processes of the server run.
fn n_running(fixture: &Fixture) -> usize {
    fixture.notes("starts").iter().filter(|pid| runs(pid)).count()
}

#[tokio::test]
async fn one_that_is_being_closed_still_counts() {
    let fixture = Fixture::new(&[]);
    let mut settings = asker(&fixture, "stays");
    settings.max_connections = 2;
    let server = McpServer::new(settings, Arc::new(NoSecrets));
    for name in ["anna", "otto", "eve", "max"] {
        pid(Client::session(name, ASKABLE).call(&server, "pid", json!({}))).await;
        assert!(n_running(&fixture) <= 3, "two, and the one that is shared");
    }
    assert_eq!(fixture.notes("starts").len(), 5);
    server.shutdown().await;
}

#[tokio::test]
async fn one_client_has_one_however_it_words_what_it_can_be_asked() {
    let fixture = Fixture::new(&[]);
    let server = server(&fixture, Isolation::Principal, 4);
    for n in 0..100 {
        let declared = format!(r#"{{"x{n}":{{}}, "elicitation":{{"form":{{"n":{n}}}}}}}"#);
        let client = Client::of_principal("anna", &declared);
        pid(client.call(&server, "pid", json!({}))).await;
    }
    assert_eq!(fixture.notes("starts").len(), 1);
    // What makes no difference to a server is nothing to be asked.
    let auto = self::server(&fixture, Isolation::Auto, 4);
    pid(Client::session("otto", r#"{"x":{}}"#).call(&auto, "pid", json!({}))).await;
    assert_eq!(auto.n_dedicated_connections(), 0);
    server.shutdown().await;
    auto.shutdown().await;
}

#[tokio::test]
async fn a_server_that_ends_at_once_is_not_started_for_each_session() {
    let fixture = Fixture::new(&[]);
    let mut settings = asker(&fixture, "ends");
    settings.isolation = Isolation::Session;
    let server = McpServer::new(settings, Arc::new(NoSecrets));
    let calls = (0..50).map(|n| {
        let server = &server;
        async move {
            let mut call = Call::new(server, "pid", json!({}));
            call.cx.origin.client = Some(ClientKey::Session(format!("s{n}").into()));
            reached(call).await.unwrap_err()
        }
    });
    for error in futures_util::future::join_all(calls).await {
        let is_told = matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Overloaded);
        assert!(is_told, "{error}");
    }
    let n_starts = fixture.notes("starts").len();
    assert!((1..=6).contains(&n_starts), "{n_starts} starts");
    server.shutdown().await;
}
