//! What a server asks in the middle of a call, and whom.

use std::sync::Arc;

use raw_json::RawJson;
use serde_json::{Value, json};
use tool_core::AskError;
use tool_exec_mcp::{Isolation, McpServer};

use crate::{
    client::{Client, EVERYTHING, asker, until},
    fixture::{Fixture, NoSecrets, load},
};

fn server(fixture: &Fixture, mode: &str) -> Arc<McpServer> {
    McpServer::new(asker(fixture, mode), Arc::new(NoSecrets))
}

#[tokio::test]
async fn what_a_client_declared_is_asked_of_it_and_nothing_else() {
    let fixture = Fixture::new(&[]);
    let server = server(&fixture, "");
    let client = Client::session("anna", r#"{"elicitation":{"form":{} , "x-vendor":1e2}}"#).answers(9);
    let answer = client.asks(&server, "elicitation/create").await;
    assert_eq!(answer, json!({"result": {"by": "anna", "n": 100.0}}));
    assert_eq!(client.last_params(), Some(RawJson::parse(r#"{"a":1}"#).unwrap()));
    for method in ["sampling/createMessage", "roots/list", "tasks/get"] {
        let answer = client.asks(&server, method).await;
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
    }
    assert_eq!(client.asked(), ["elicitation/create"]);
    // What it declared arrives with its own bytes; the shared connection declares nothing.
    assert_eq!(
        fixture.notes("declared"),
        ["{}", r#"{"elicitation":{"form":{} , "x-vendor":1e2}}"#]
    );
    server.shutdown().await;
}

#[tokio::test]
async fn everything_that_can_be_declared_can_be_asked() {
    let fixture = Fixture::new(&[]);
    let server = server(&fixture, "");
    let client = Client::session("anna", EVERYTHING).answers(9);
    for method in ["elicitation/create", "sampling/createMessage", "roots/list"] {
        let answer = client.asks(&server, method).await;
        assert_eq!(answer["result"]["by"], "anna", "{method}: {answer}");
    }
    assert_eq!(server.n_dedicated_connections(), 1, "one for all calls of the client");
    server.shutdown().await;
}

#[tokio::test]
async fn errors_of_the_client_reach_the_server() {
    let fixture = Fixture::new(&[]);
    let server = server(&fixture, "");
    let client = Client::session("anna", r#"{"sampling":{}}"#).answers(9);
    let own = r#"{"code":-1,"message":"no","data":{"n":1e2}}"#;
    for (error, code) in [
        (AskError::Refused(RawJson::parse(own).unwrap()), -1),
        (AskError::Impossible("no".to_owned()), -32601),
        (AskError::Unanswered, -32603),
    ] {
        client.refuses(error);
        let answer = client.asks(&server, "sampling/createMessage").await;
        assert_eq!(answer["error"]["code"], code, "{answer}");
        if code == -1 {
            assert_eq!(answer["error"], serde_json::from_str::<Value>(own).unwrap());
        }
    }
    server.shutdown().await;
}

#[tokio::test]
async fn of_two_clients_that_call_at_once_each_gets_its_own_questions() {
    let fixture = Fixture::new(&[]);
    let server = server(&fixture, "");
    let clients = ["anna", "otto"].map(|name| Client::session(name, r#"{"elicitation":{}}"#));
    let asking: Vec<_> = clients
        .iter()
        .map(|client| {
            let (client, server) = (client.clone(), server.clone());
            tokio::spawn(async move { client.asks(&server, "elicitation/create").await })
        })
        .collect();
    for client in &clients {
        client.was_asked(1).await;
    }
    // Both are open at the same time.
    for client in &clients {
        client.clone().answers(1);
    }
    let mut answers = Vec::new();
    for asking in asking {
        answers.push(asking.await.unwrap()["result"]["by"].clone());
    }
    assert_eq!(answers, ["anna", "otto"]);
    assert_eq!(server.n_dedicated_connections(), 2);
    server.shutdown().await;
}

#[tokio::test]
async fn a_principals_clients_have_a_connection_for_each_call() {
    let fixture = Fixture::new(&[]);
    let server = server(&fixture, "");
    let client = Client::of_principal("anna", r#"{"elicitation":{}}"#);
    let asking: Vec<_> = (0..2)
        .map(|_| {
            let (client, server) = (client.clone(), server.clone());
            tokio::spawn(async move { client.asks(&server, "elicitation/create").await })
        })
        .collect();
    client.was_asked(2).await;
    assert_eq!(server.n_dedicated_connections(), 2);
    client.clone().answers(2);
    for asking in asking {
        assert_eq!(asking.await.unwrap()["result"]["by"], "anna");
    }
    // The next call takes one that is free.
    client
        .clone()
        .answers(1)
        .asks(&server, "elicitation/create")
        .await;
    assert_eq!(server.n_dedicated_connections(), 2);
    server.shutdown().await;
}

#[tokio::test]
async fn nobody_is_asked_over_a_shared_connection() {
    let fixture = Fixture::new(&[]);
    let mut settings = asker(&fixture, "");
    settings.isolation = Isolation::Shared;
    let server = McpServer::new(settings, Arc::new(NoSecrets));
    let client = Client::session("anna", EVERYTHING).answers(9);
    let answer = client.asks(&server, "elicitation/create").await;
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    assert!(client.asked().is_empty());
    assert_eq!(fixture.notes("declared"), ["{}"]);
    server.shutdown().await;
}

#[tokio::test]
async fn lists_are_those_of_clients_that_can_be_asked_where_no_call_shares_their_connection() {
    let fixture = Fixture::new(&[]);
    let mut settings = asker(&fixture, "wants-roots");
    settings.isolation = Isolation::Session;
    let server = McpServer::new(settings, Arc::new(NoSecrets));
    load(&server).await;
    let declared = r#"{"elicitation":{"form":{},"url":{}},"sampling":{"context":{},"tools":{}},"roots":{}}"#;
    assert_eq!(fixture.notes("declared"), [declared]);
    // What is asked there is refused.
    until(|| !fixture.notes("answers").is_empty()).await;
    let answer: Value = serde_json::from_str(&fixture.notes("answers")[0]).unwrap();
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    // Calls are made over another one.
    let client = Client::session("anna", r#"{"elicitation":{}}"#).answers(1);
    let answer = client.asks(&server, "elicitation/create").await;
    assert_eq!(answer["result"]["by"], "anna");
    assert_eq!(fixture.notes("declared"), [declared, r#"{"elicitation":{}}"#]);
    server.shutdown().await;
}

#[tokio::test]
async fn a_question_is_taken_back_when_its_call_ends() {
    let fixture = Fixture::new(&[]);
    let server = server(&fixture, "");
    let client = Client::session("anna", r#"{"elicitation":{}}"#);
    let calling = tokio::spawn({
        let (client, server) = (client.clone(), server.clone());
        async move { client.asks(&server, "elicitation/create").await }
    });
    client.was_asked(1).await;
    calling.abort();
    until(|| client.withdrawn() == 1).await;
    fixture.noted("notifications", "notifications/cancelled").await;
    // Also when the server answers the call without waiting for its question.
    client
        .call(&server, "leave-question", json!({}))
        .make()
        .await
        .unwrap();
    until(|| {
        fixture
            .notes("answers")
            .iter()
            .any(|answer| answer.contains("-32600"))
    })
    .await;
    server.shutdown().await;
}

/// Has a client give up a call that the server goes on with.
async fn give_up(client: &Arc<Client>, server: &Arc<McpServer>, fixture: &Fixture) {
    let n = fixture.notes("held").len();
    let calling = tokio::spawn({
        let (client, server) = (client.clone(), server.clone());
        async move { client.call(&server, "hold", json!({})).make().await }
    });
    until(|| fixture.notes("held").len() > n).await;
    calling.abort();
    fixture.noted("notifications", "notifications/cancelled").await;
}

#[tokio::test]
async fn what_a_call_asks_that_was_given_up_is_not_asked_of_the_next_client() {
    let fixture = Fixture::new(&[]);
    let server = server(&fixture, "");
    let client = || Client::of_principal("anonymous", r#"{"elicitation":{}}"#).answers(9);
    let (first, second) = (client(), client());
    give_up(&first, &server, &fixture).await;
    second
        .call(&server, "ask-for-held", json!({}))
        .make()
        .await
        .unwrap();
    assert_eq!(server.n_dedicated_connections(), 1, "the one before is closed");
    // A call after which nothing is left costs no connection.
    let answer = second.asks(&server, "elicitation/create").await;
    assert_eq!(answer["result"]["by"], "anonymous", "{answer}");
    assert_eq!((first.asked().len(), second.asked().len()), (0, 1));
    assert_eq!(fixture.notes("starts").len(), 3, "one is shared");
    server.shutdown().await;
}

#[tokio::test]
async fn a_call_that_was_given_up_counts_as_one_that_runs() {
    let fixture = Fixture::new(&[]);
    let mut settings = asker(&fixture, "");
    settings.isolation = Isolation::Principal;
    let server = McpServer::new(settings, Arc::new(NoSecrets));
    let [anna, otto] = ["a", "o"].map(|name| Client::session(name, r#"{"elicitation":{}}"#).answers(9));
    let running = tokio::spawn({
        let (otto, server) = (otto.clone(), server.clone());
        async move { otto.call(&server, "hold", json!({})).make().await }
    });
    until(|| fixture.notes("held").len() == 1).await;
    give_up(&anna, &server, &fixture).await;
    let answer = otto.asks(&server, "elicitation/create").await;
    assert_eq!(
        answer["error"]["code"], -32600,
        "it may be for the other: {answer}"
    );
    otto.call(&server, "release", json!({})).make().await.unwrap();
    running.await.unwrap().unwrap();
    // The client that gave it up has the connection still, another one gets one on which nothing is left.
    let answer = anna.asks(&server, "elicitation/create").await;
    assert_eq!(answer["result"]["by"], "a", "{answer}");
    assert_eq!(fixture.notes("starts").len(), 1);
    let answer = otto.asks(&server, "elicitation/create").await;
    assert_eq!(answer["result"]["by"], "o", "{answer}");
    assert_eq!(fixture.notes("starts").len(), 2);
    server.shutdown().await;
}

#[tokio::test]
async fn the_time_that_the_client_takes_is_not_the_calls() {
    let fixture = Fixture::new(&[]);
    let server = server(&fixture, "");
    let client = Client::session("anna", r#"{"elicitation":{}}"#);
    let limit = std::time::Duration::from_millis(100);
    let calling = tokio::spawn({
        let (client, server) = (client.clone(), server.clone());
        async move {
            // Opens the connection.
            client.call(&server, "echo", json!({})).make().await.unwrap();
            let call = client.call(&server, "ask", json!({"method": "elicitation/create"}));
            call.within(limit).make().await
        }
    });
    client.was_asked(1).await;
    tokio::time::sleep(limit * 5).await;
    client.clone().answers(1);
    calling.await.unwrap().unwrap();
    server.shutdown().await;
}

#[tokio::test]
async fn a_server_that_wants_roots_at_once_gets_them() {
    let fixture = Fixture::new(&[]);
    let server = server(&fixture, "wants-roots");
    let client = Client::session("anna", r#"{"roots":{"listChanged":true}}"#).answers(9);
    client.call(&server, "echo", json!({})).make().await.unwrap();
    fixture
        .noted("answers", r#"{"result":{"by":"anna","n":1e2}}"#)
        .await;
    assert_eq!(client.asked(), ["roots/list"], "the client is asked once");
    // No call runs: the server is told with the next one, and can have the new roots then.
    server.notify_roots_changed(&tool_core::ClientKey::Session("anna".into()));
    client.call(&server, "echo", json!({})).make().await.unwrap();
    fixture
        .noted("notifications", "notifications/roots/list_changed")
        .await;
    until(|| {
        fixture
            .notes("answers")
            .iter()
            .filter(|answer| answer.contains("anna"))
            .count()
            == 2
    })
    .await;
    assert!((2..=3).contains(&client.asked().len()), "{:?}", client.asked());
    server.shutdown().await;
}

#[tokio::test]
async fn roots_that_change_during_a_call_are_told_at_once() {
    let fixture = Fixture::new(&[]);
    let server = server(&fixture, "");
    let client = Client::session("anna", r#"{"roots":{"listChanged":true}}"#).answers(9);
    let calling = tokio::spawn({
        let (client, server) = (client.clone(), server.clone());
        async move { client.call(&server, "hold", json!({})).make().await }
    });
    until(|| fixture.notes("held").len() == 1).await;
    server.notify_roots_changed(&tool_core::ClientKey::Session("anna".into()));
    fixture
        .noted("notifications", "notifications/roots/list_changed")
        .await;
    assert_eq!(client.asked(), ["roots/list", "roots/list"]);
    calling.abort();
    server.shutdown().await;
}

#[tokio::test]
async fn a_server_that_wants_roots_of_a_client_that_comes_and_goes() {
    let fixture = Fixture::new(&[]);
    let server = server(&fixture, "wants-roots");
    let client = Client::of_principal("anna", r#"{"roots":{}}"#);
    // The call that opens the connection may be over before the client has answered.
    client.call(&server, "echo", json!({})).make().await.unwrap();
    until(|| {
        fixture
            .notes("answers")
            .iter()
            .any(|answer| answer.contains("-32600"))
    })
    .await;
    server.shutdown().await;
}
