//! Access to the hosts that a command names.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use tool_sandbox::{NetworkAccess, SandboxCommand, SandboxError, SandboxEvent, SandboxLevel, SandboxOutput};

use crate::support::{at, shell};

/// Client that sends its second argument to the port in its first, and prints the answer.
const CLIENT: &str = r#"my ($port, $text) = @ARGV; $text =~ s/\\r\\n/\r\n/g;
socket(S, 2, 1, 6) or die "socket: $!"; connect(S, pack("S n C4 x8", 2, $port, 127, 0, 0, 1)) or die "connect: $!";
syswrite(S, $_) for split /<wait>/, $text; while (sysread(S, my $part, 4096)) { print $part }"#;

/// HTTP server on loopback that counts its connections.
struct Server {
    port: u16,
    connections: Arc<AtomicUsize>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&connections);
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                counter.fetch_add(1, Ordering::SeqCst);
                let mut request = Vec::new();
                let mut buffer = [0; 1024];
                while !request.ends_with(b"\r\n\r\n") {
                    match stream.read(&mut buffer) {
                        Ok(length @ 1..) => request.extend_from_slice(&buffer[..length]),
                        _ => break,
                    }
                }
                let first = String::from_utf8_lossy(&request)
                    .lines()
                    .next()
                    .unwrap_or_default()
                    .to_owned();
                let body = format!("seen {first}");
                let length = body.len();
                // The client may be gone.
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}"
                );
            }
        });
        Self { port, connections }
    }

    fn count(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Runs the client, and returns its output and the events.
async fn client(hosts: &[String], port: u16, text: &str) -> Option<(SandboxOutput, Vec<SandboxEvent>)> {
    let sandbox = at(SandboxLevel::Bwrap).await?;
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let command = SandboxCommand::new("/usr/bin/perl")
        .args(["-e", CLIENT, "--", &port.to_string(), text])
        .network(NetworkAccess::Hosts(hosts.to_vec()))
        .on_event(Arc::new(move |event| seen.lock().unwrap().push(event)));
    let output = sandbox.run(command).await.unwrap();
    let events = events.lock().unwrap().clone();
    Some((output, events))
}

fn said(output: &SandboxOutput) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[tokio::test]
async fn a_named_host_is_reached_over_http() {
    let server = Server::start();
    let host = format!("127.0.0.1:{}", server.port);
    let request =
        format!("GET http://{host}/path?x=1 HTTP/1.1\\r\\nHost: {host}\\r\\nConnection: close\\r\\n\\r\\n");
    let Some((output, events)) = client(std::slice::from_ref(&host), 3128, &request).await else {
        return;
    };
    assert!(
        said(&output).contains("seen GET /path?x=1 HTTP/1.1"),
        "{output:?}"
    );
    assert_eq!(server.count(), 1);
    assert!(
        matches!(&events[..], [SandboxEvent::NetworkAllowed { host, port, .. }] if host == "127.0.0.1" && *port == server.port),
        "{events:?}"
    );
}

#[tokio::test]
async fn a_named_host_is_reached_through_a_tunnel() {
    let server = Server::start();
    let host = format!("127.0.0.1:{}", server.port);
    let request =
        format!("CONNECT {host} HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\nGET /inner HTTP/1.0\\r\\n\\r\\n");
    let Some((output, events)) = client(&[host], 3128, &request).await else {
        return;
    };
    assert!(said(&output).contains("seen GET /inner HTTP/1.0"), "{output:?}");
    assert!(
        matches!(&events[..], [SandboxEvent::NetworkAllowed { .. }]),
        "{events:?}"
    );
}

#[tokio::test]
async fn other_hosts_are_denied_and_reported() {
    let server = Server::start();
    let (named, other) = (format!("127.0.0.1:{}", server.port), server.port);
    for target in [
        format!("127.0.0.2:{other}"),
        format!("localhost:{other}"),
        "127.0.0.1:1".to_owned(),
    ] {
        let requests = [
            format!("GET http://{target}/ HTTP/1.1\\r\\nHost: {named}\\r\\nConnection: close\\r\\n\\r\\n"),
            format!("CONNECT {target} HTTP/1.1\\r\\nHost: {named}\\r\\nConnection: close\\r\\n\\r\\n"),
        ];
        for request in requests {
            let Some((output, events)) = client(std::slice::from_ref(&named), 3128, &request).await else {
                return;
            };
            assert!(said(&output).starts_with("HTTP/1.1 403 "), "{target}: {output:?}");
            assert!(
                matches!(&events[..], [SandboxEvent::NetworkDenied { .. }]),
                "{target}: {events:?}"
            );
        }
    }
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn there_is_no_way_around_the_proxy() {
    let server = Server::start();
    let host = format!("127.0.0.1:{}", server.port);
    let Some((output, events)) = client(&[host], server.port, "GET / HTTP/1.0\\r\\n\\r\\n").await else {
        return;
    };
    assert!(said(&output).contains("connect: "), "{output:?}");
    assert_eq!((server.count(), events.len()), (0, 0));
}

#[tokio::test]
async fn the_program_has_the_proxy_and_no_listener() {
    let Some(sandbox) = at(SandboxLevel::Bwrap).await else {
        return;
    };
    let script = "echo $http_proxy $HTTPS_PROXY; ls /proc/self/fd | wc -l; ls /proc/self/fd | tr '\\n' ' '";
    let network = NetworkAccess::Hosts(vec!["example.com".to_owned()]);
    let output = sandbox.run(shell(script).network(network)).await.unwrap();
    // The fourth is that of `ls` on the directory.
    let expected = "http://127.0.0.1:3128 http://127.0.0.1:3128\n4\n0 1 2 3 ";
    assert_eq!(said(&output), expected);
}

#[tokio::test]
async fn a_level_without_namespaces_refuses_hosts() {
    let Some(sandbox) = at(SandboxLevel::Landlock).await else {
        return;
    };
    let network = NetworkAccess::Hosts(vec!["example.com".to_owned()]);
    let refused = sandbox.run(shell("true").network(network)).await;
    assert!(
        matches!(refused, Err(SandboxError::Refused { .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn malformed_hosts_are_refused() {
    let Some(sandbox) = at(SandboxLevel::Bwrap).await else {
        return;
    };
    let network = NetworkAccess::Hosts(vec!["https://example.com".to_owned()]);
    let refused = sandbox.run(shell("true").network(network)).await;
    assert!(
        matches!(refused, Err(SandboxError::Refused { .. })),
        "{refused:?}"
    );
}
