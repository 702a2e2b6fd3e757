//! Servers that ask in the middle of a call, and clients that can be asked: with any transport and any era, the client
//! receives the server's questions, and the server the client's answers.

use std::{fs, process::Command, thread};

use serde_json::{Value, json};
use tool_testkit::PeerCommand;

use crate::support::{
    Answer, Client, Configuration, Era, Gateway, Offer, StdioClient, assert_same_result, base_environment,
    binary, call_params, end_both, eventually, everything_at_no_time, installed, members, mock_arguments,
    mock_server,
};

/// Returns an offer with all client capabilities.
fn offer() -> Offer {
    Offer::new(
        r#"{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}"#,
        |method, params| {
            let result = match method {
                "elicitation/create" if params.contains(r#""mode":"url""#) => r#"{"action":"accept"}"#,
                "elicitation/create" if params.contains("interpretation") => {
                    r#"{"action":"accept","content":{"interpretation":"snake"}}"#
                }
                "elicitation/create" => {
                    r#"{"action":"accept","content":{"name":"Zo\u00eb \"Z\"","check":true,"number":1e2}}"#
                }
                "sampling/createMessage" => {
                    r#"{"model":"none","role":"assistant","content":{"type":"text","text":"Grüße"}}"#
                }
                "roots/list" => r#"{"roots":[{"uri":"file:///wrens","name":"Wrens"}]}"#,
                _ => return None,
            };
            Some(result.to_owned())
        },
    )
}

/// Returns the calls that ask, each with a flag for tools that must run as a task.
fn calls() -> [(&'static str, Value, bool); 5] {
    let link = json!({"url": "https://example.org/pay", "message": "Pay \"there\"", "elicitationId": "e-1"});
    [
        ("trigger-elicitation-request", json!({}), false),
        ("trigger-url-elicitation", link, false),
        (
            "trigger-sampling-request",
            json!({"prompt": "Say \u{1f426}", "maxTokens": 7}),
            false,
        ),
        ("get-roots-list", json!({}), false),
        (
            "simulate-research-query",
            json!({"topic": "python", "ambiguous": true}),
            true,
        ),
    ]
}

/// Returns the questions to a client, without those for its roots, which a server may ask at any time.
fn asked(client: &mut (impl Client + ?Sized)) -> Vec<(String, String)> {
    let asked = client.offer().asked.iter();
    let questions = asked.filter(|(method, _)| method != "roots/list");
    questions
        .map(|(method, params)| {
            let mut params = members(params);
            params.remove("_meta");
            (method.clone(), format!("{params:?}"))
        })
        .collect()
}

/// Connects to the server without a gateway.
fn direct(peer: &PeerCommand) -> StdioClient {
    let mut command = peer.to_command();
    command.env_clear().envs(base_environment());
    StdioClient::start_offering(&mut command, Era::Legacy, offer())
}

/// Checks that every call has the same answer and the same questions as with the server itself.
fn assert_bridged(way: &str, peer: &PeerCommand, client: &mut dyn Client) {
    let mut direct = direct(peer);
    for (tool, arguments, is_task) in calls() {
        let arguments = arguments.to_string();
        let expected = if is_task {
            direct.call_as_task(tool, &arguments)
        } else {
            direct.call(tool, &arguments)
        };
        let params = call_params(&format!("peer__{tool}"), &arguments);
        let relayed = client.converse("tools/call", &params);
        let what = format!("`{tool}` {way}");
        assert_same_result(&what, &expected.result(), &relayed.result());
        assert_eq!(asked(client), asked(&mut direct), "{what}");
    }
    assert_eq!(asked(client).len(), 4);
}

fn configuration(peer: &PeerCommand) -> Configuration {
    Configuration::default().peer_with("peer", peer, &json!({"isolation": "session"}))
}

#[test]
fn from_a_legacy_server_over_stdio() {
    let Some((peer, _folder)) = everything_at_no_time("stdio") else {
        return;
    };
    for era in [Era::Legacy, Era::Modern] {
        let mut gateway = Gateway::stdio_offering(era, &configuration(&peer), offer());
        assert_bridged(&format!("over stdio, {}", era.name()), &peer, &mut gateway.client);
        assert_eq!(gateway.end().code(), Some(0));
    }
}

#[test]
fn from_a_legacy_server_over_http() {
    let Some((peer, _folder)) = everything_at_no_time("stdio") else {
        return;
    };
    let gateway = Gateway::http(&configuration(&peer));
    for era in [Era::Legacy, Era::Modern] {
        let mut client = gateway.client_offering(era, offer());
        assert_bridged(&format!("over HTTP, {}", era.name()), &peer, &mut client);
    }
    assert_eq!(gateway.terminate().code(), Some(0));
}

/// A modern server that asks in two rounds, with two questions in the first.
const CURIOUS: &str = r#"
tools:
  plan:
    replies:
      - template: "{{ $answers.who.content.name }}, {{ $answers.where.roots }}: {{ $answers.what.content.text }}"
        before:
          - elicit: {key: who, message: "Who \"goes\"?", schema: {type: object, properties: {name: {type: string}}}}
          - ask: {key: where, method: roots/list}
          - delay: 10ms
          - ask:
              key: what
              method: sampling/createMessage
              params: {messages: [{role: user, content: {type: text, text: hello}}], maxTokens: 7}
prompts:
  ask:
    replies:
      - template: "for {{ $answers.who.content.name }}"
        before: [{elicit: {key: who, message: Who?, schema: {type: object, properties: {}}}}]
resources:
  "test:notes":
    replies:
      - template: "of {{ $answers.who.content.name }}"
        before: [{elicit: {key: who, message: Who?, schema: {type: object, properties: {}}}}]
"#;

#[test]
fn from_a_modern_server_as_configured_by_default() {
    from_a_mock_server(Era::Modern);
}

#[test]
fn from_a_legacy_server_as_configured_by_default() {
    from_a_mock_server(Era::Legacy);
}

fn from_a_mock_server(era: Era) {
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("scenario.yaml");
    fs::write(&scenario, format!("era: {}{CURIOUS}", era.name())).unwrap();
    let mut direct = Command::new(binary());
    let direct = direct.args(mock_arguments(&scenario));
    let mut direct = StdioClient::start_offering(direct, era, offer());
    let configuration = Configuration::default().server("peer", mock_server(&scenario));
    let http = Gateway::http(&configuration);
    let mut legacy = Gateway::stdio_offering(Era::Legacy, &configuration, offer());
    let mut modern = Gateway::stdio_offering(Era::Modern, &configuration, offer());
    let mut clients: [(&str, &mut dyn Client); 4] = [
        ("over stdio, legacy", &mut legacy.client),
        ("over stdio, modern", &mut modern.client),
        (
            "over HTTP, legacy",
            &mut http.client_offering(Era::Legacy, offer()),
        ),
        (
            "over HTTP, modern",
            &mut http.client_offering(Era::Modern, offer()),
        ),
    ];
    for (method, own, params) in [
        (
            "tools/call",
            r#"{"name":"plan","arguments":{}}"#,
            r#"{"name":"peer__plan","arguments":{}}"#,
        ),
        ("prompts/get", r#"{"name":"ask"}"#, r#"{"name":"peer__ask"}"#),
        (
            "resources/read",
            r#"{"uri":"test:notes"}"#,
            r#"{"uri":"test:notes"}"#,
        ),
    ] {
        let expected = direct.converse(method, own).result();
        assert!(expected.contains("Zo"), "{expected}");
        for (way, client) in &mut clients {
            let relayed = client.converse(method, params).result();
            assert_same_result(&format!("{method} {way}"), &expected, &relayed);
            assert_eq!(asked(*client), asked(&mut direct), "{method} {way}");
        }
    }
    assert_eq!(asked(&mut direct).len(), 4);
    assert_eq!(legacy.end().code(), Some(0));
    assert_eq!(modern.end().code(), Some(0));
    assert_eq!(http.terminate().code(), Some(0));
}

/// Returns the parameters of a call that fails the first time with a link to open, and then succeeds.
fn call_after_a_link() -> (String, String) {
    let arguments =
        json!({"url": "https://example.org/pay", "message": "Pay", "errorPath": true}).to_string();
    let params = call_params("peer__trigger-url-elicitation", &arguments);
    (arguments, params)
}

#[test]
fn a_link_that_has_to_be_opened_first() {
    let Some((peer, _folder)) = everything_at_no_time("stdio") else {
        return;
    };
    let (arguments, params) = call_after_a_link();
    let mut direct = direct(&peer);
    let Answer::Error(expected) = direct.call("trigger-url-elicitation", &arguments) else {
        panic!("the server does not want a link opened");
    };
    direct.call("trigger-url-elicitation", &arguments).result();
    let gateway = Gateway::http(&configuration(&peer));

    // Legacy clients have this error in their protocol.
    let mut legacy = gateway.client_offering(Era::Legacy, offer());
    let Answer::Error(error) = legacy.request("tools/call", &params) else {
        panic!("the client is not told");
    };
    assert_eq!(without_ids(&error), without_ids(&expected));
    assert_eq!(asked(&mut legacy), []);

    // A modern client is asked to open the link, and the call is made again.
    let mut modern = gateway.client_offering(Era::Modern, offer());
    let result = modern.converse("tools/call", &params).result();
    assert!(
        result.contains("User completed the URL elicitation flow"),
        "{result}"
    );
    let questions = asked(&mut modern);
    assert_eq!(questions.len(), 2, "{questions:?}");
    assert!(
        questions[0].1.contains("https://modelcontextprotocol.io"),
        "{questions:?}"
    );
    assert!(
        questions[1].1.contains("https://example.org/pay"),
        "{questions:?}"
    );
    assert_eq!(gateway.terminate().code(), Some(0));
}

/// Returns an error without the ids of its elicitations, which are random.
fn without_ids(error: &str) -> Value {
    let mut error: Value = serde_json::from_str(error).unwrap();
    for elicitation in error["data"]["elicitations"].as_array_mut().unwrap() {
        assert!(elicitation["elicitationId"].take().is_string());
    }
    error
}

#[test]
fn a_client_that_refuses() {
    let Some((peer, _folder)) = everything_at_no_time("stdio") else {
        return;
    };
    let refusing = || Offer::new(r#"{"elicitation":{"form":{}}}"#, |_, _| None);
    let mut command = peer.to_command();
    command.env_clear().envs(base_environment());
    let mut direct = StdioClient::start_offering(&mut command, Era::Legacy, refusing());
    let expected = direct.call("trigger-elicitation-request", "{}").result();
    let gateway = Gateway::http(&configuration(&peer));
    let mut client = gateway.client_offering(Era::Legacy, refusing());
    let relayed = client.call("peer__trigger-elicitation-request", "{}").result();
    assert!(relayed.contains("not offered"), "{relayed}");
    assert_same_result("a refusal", &expected, &relayed);
    assert_eq!(gateway.terminate().code(), Some(0));
}

#[test]
fn a_client_that_cannot_be_asked_is_not() {
    let Some((peer, _folder)) = everything_at_no_time("stdio") else {
        return;
    };
    let gateway = Gateway::http(&configuration(&peer));
    for era in [Era::Legacy, Era::Modern] {
        let mut client = gateway.client(era);
        let result = client.call("peer__trigger-elicitation-request", "{}").result();
        assert_eq!(members(&result)["isError"], "true", "{result}");
        assert_eq!(client.offer().asked, []);
        // Tools that ask nothing can be called.
        client.call("peer__echo", r#"{"message":"hello"}"#).result();
    }
    assert_eq!(gateway.terminate().code(), Some(0));
}

#[test]
fn each_client_is_asked_what_its_own_call_asks() {
    let Some((peer, _folder)) = everything_at_no_time("stdio") else {
        return;
    };
    let named = |answers| Offer::new(r#"{"elicitation":{"form":{}}}"#, answers);
    let ada = named(|_, _| Some(r#"{"action":"accept","content":{"name":"Ada"}}"#.to_owned()));
    let bob = named(|_, _| Some(r#"{"action":"accept","content":{"name":"Bob"}}"#.to_owned()));
    let gateway = Gateway::http(&configuration(&peer));
    thread::scope(|scope| {
        for (name, offer) in [("Ada", ada), ("Bob", bob)] {
            for era in [Era::Legacy, Era::Modern] {
                let mut client = gateway.client_offering(era, offer.clone());
                scope.spawn(move || {
                    let params = call_params("peer__trigger-elicitation-request", "{}");
                    for _ in 0..5 {
                        let result = client.converse("tools/call", &params).result();
                        assert!(result.contains(&format!("- Name: {name}")), "{result}");
                    }
                    assert_eq!(asked(&mut client).len(), 5);
                });
            }
        }
    });
    assert_eq!(gateway.terminate().code(), Some(0));
}

#[test]
fn a_client_whose_roots_change() {
    let Some((peer, _folder)) = everything_at_no_time("stdio") else {
        return;
    };
    let mut gateway = Gateway::stdio_offering(Era::Legacy, &configuration(&peer), offer());
    let client = &mut gateway.client;
    let before = client.call("peer__get-roots-list", "{}").result();
    assert!(before.contains("file:///wrens"), "{before}");
    client.offer().answers = |_, _| Some(r#"{"roots":[{"uri":"file:///finches"}]}"#.to_owned());
    client.notify("notifications/roots/list_changed");
    eventually("the server knows the new roots", || {
        let now = client.call("peer__get-roots-list", "{}").result();
        now.contains("file:///finches")
    });
    assert_eq!(gateway.end().code(), Some(0));
}

/// The server serves the roots of its client instead of the folder of its command line: each client of the gateway with
/// a stable identity has its own.
#[test]
fn a_server_that_serves_the_roots_of_its_client() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let Some(peer) = installed(|peers| peers.filesystem(&root)) else {
        return;
    };
    let configuration = Configuration::default().peer("files", &peer);
    let params = call_params("files__list_allowed_directories", "{}");
    let own = env!("CARGO_MANIFEST_DIR");
    let roots = || {
        Offer::new(r#"{"roots":{}}"#, |_, _| {
            let uri = concat!("file://", env!("CARGO_MANIFEST_DIR"));
            Some(json!({"roots": [{"uri": uri}]}).to_string())
        })
    };
    let assert_served = |client: &mut dyn Client| {
        eventually("the server serves the client's own roots", || {
            let allowed = client.converse("tools/call", &params).result();
            allowed.contains(own)
        });
    };
    let http = Gateway::http(&configuration);
    let mut stdio = Gateway::stdio_offering(Era::Modern, &configuration, roots());
    assert_served(&mut stdio.client);
    assert_served(&mut http.client_offering(Era::Legacy, roots()));

    let allowed = http.client(Era::Legacy).request("tools/call", &params).result();
    assert!(allowed.contains(root.to_str().unwrap()), "{allowed}");
    assert!(!allowed.contains(own), "{allowed}");
    end_both(stdio, http);
}
