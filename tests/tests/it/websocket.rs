//! A server behind the WebSocket transport of the official Python SDK, with and without TLS.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;
use tool_testkit::PeerCommand;

use crate::support::{
    Client as _, Configuration, Era, HttpClient, HttpGateway, installed, listening_peer, members,
};

const TOKEN: &str = "Bearer t0ken-of-the-test";

fn peer() -> Option<PeerCommand> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/websocket.py");
    installed(|peers| peers.fastmcp(&script))
}

fn gateway(url: &str, variables: &[(&str, String)]) -> (HttpGateway, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let live = json!({
        "url": url,
        "headers": {"Authorization": TOKEN},
        "start_timeout_ms": 60_000,
        // The server returns the credentials that it received.
        "redaction": "off",
    });
    let configuration = Configuration::default()
        .server("live", live)
        .gateway(json!({"list_wait": "60s"}));
    let gateway = HttpGateway::of_file(&configuration.write(folder.path()), variables);
    (gateway, folder)
}

fn called(client: &mut HttpClient, tool: &str, arguments: &Value) -> String {
    let result = client.call(tool, &arguments.to_string()).result();
    let content: Value = serde_json::from_str(&members(&result)["content"]).unwrap();
    content[0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{result}"))
        .to_owned()
}

/// Lists and calls everything of the server, as clients of both eras.
fn is_used(gateway: HttpGateway) {
    // Longer than one read, with characters that a frame could split.
    let long = "wren \u{1f426} ".repeat(40_000);
    for era in [Era::Legacy, Era::Modern] {
        let mut client = gateway.client(era);
        let tools: Vec<String> = client.tools().into_iter().map(|(name, _)| name).collect();
        assert_eq!(tools, ["live__credentials", "live__echo"]);
        for text in ["", "a\nb", &long] {
            assert_eq!(called(&mut client, "live__echo", &json!({"text": text})), text);
        }
        assert_eq!(called(&mut client, "live__credentials", &json!({})), TOKEN);
    }
    std::thread::scope(|scope| {
        for n in 0..20 {
            let gateway = &gateway;
            scope.spawn(move || {
                let text = format!("call {n}");
                let mut client = gateway.client(Era::Modern);
                assert_eq!(called(&mut client, "live__echo", &json!({"text": text})), text);
            });
        }
    });
    assert_eq!(gateway.terminate().code(), Some(0));
}

#[test]
fn calls_go_over_a_websocket() {
    let Some(peer) = peer() else { return };
    let (_server, address) = listening_peer(&peer);
    let (gateway, _folder) = gateway(&format!("ws://{address}/"), &[]);
    is_used(gateway);
}

#[test]
fn calls_go_over_a_websocket_with_tls_if_its_certificate_is_trusted() {
    let Some(peer) = peer() else { return };
    let certificates = tempfile::tempdir().unwrap();
    let (_server, address) = listening_peer(&peer.arg(certificates.path()));
    let url = format!("wss://{address}/");
    let authority = certificates
        .path()
        .join("authority.pem")
        .to_str()
        .unwrap()
        .to_owned();
    let (trusting, _folder) = gateway(&url, &[("SSL_CERT_FILE", authority)]);
    is_used(trusting);
    // Without the test's certificate authority, the server is not trusted.
    let (wary, _folder) = gateway(&url, &[]);
    let refused = wary.client(Era::Legacy).call("live__echo", r#"{"text":"a"}"#);
    assert!(
        refused.error_kind().is_some_and(|kind| kind == "unavailable"),
        "{refused:?}"
    );
    assert_eq!(wary.terminate().code(), Some(0));
}
