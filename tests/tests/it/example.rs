//! The shipped configuration with all its backends: mock tools, an HTTP API, and servers over both transports.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    process::Command,
    thread,
};

use crate::support::{
    Answer, Client as _, Configuration, Era, Gateway, HttpGateway, Process, example, installed,
    listening_peer, members,
};
use serde_json::{Value, json};

/// Starts a weather service on loopback, as the example's tools expect it. It answers each request with its content.
fn weather() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(stream));
        }
    });
    address
}

fn serve(stream: TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut stream = stream;
    loop {
        let (mut line, mut length) = (String::new(), 0);
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok()?;
            let header = header.trim().to_ascii_lowercase();
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
            if header.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let mut words = line.split(' ');
        let (method, target) = (words.next()?, words.next()?);
        let (status, answer) = match method {
            "POST" => (
                "201 Created",
                json!({"taken": serde_json::from_slice::<Value>(&body).ok()?}),
            ),
            _ => (
                "200 OK",
                json!({"data": {"city": target, "days": []}, "noise": true}),
            ),
        };
        let answer = answer.to_string();
        let length = answer.len();
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{answer}"
        )
        .ok()?;
    }
}

/// Returns the structured content of one of our tools.
fn structured(answer: Answer) -> Value {
    let result = members(&answer.result());
    serde_json::from_str(&result["structuredContent"]).unwrap()
}

#[test]
fn every_tool_of_the_example_works() {
    let found = installed(|peers| Ok((peers.node(), peers.everything("streamableHttp")?)));
    let Some((node, command)) = found else { return };
    let (_everything, address) = listening_peer(&command);
    // The configuration searches the script below the folder of the peers.
    let script = PathBuf::from(&command.args[0]);
    let folder = script
        .ancestors()
        .find(|folder| folder.join("node/node_modules").is_dir())
        .unwrap();
    let variables = [
        ("WEATHER_URL", format!("http://{}", weather())),
        ("EVERYTHING_URL", format!("http://{address}/mcp")),
        ("TOOLPLANE_NODE", node.to_str().unwrap().to_owned()),
        ("TOOLPLANE_PEERS", folder.to_str().unwrap().to_owned()),
    ];
    let gateway = HttpGateway::of_file(&example("toolplane.yaml"), &variables);
    let mut client = gateway.client(Era::Legacy);

    let names: Vec<String> = client.tools().into_iter().map(|(name, _)| name).collect();
    for name in [
        "stations",
        "alert",
        "forecast",
        "everything__echo",
        "remote_echo",
        "remote_add",
    ] {
        assert!(
            names.iter().any(|listed| listed == name),
            "no `{name}` in {names:?}"
        );
    }
    for (name, answer) in [
        // This caller lacks the permission; the blocked tool is denied to all.
        ("report", Err("denied")),
        ("everything__get-env", Err("denied")),
        // Excluded under the server's own name; it has another name here.
        ("everything__toggle-simulated-logging", Ok(-32602)),
        ("remote_get-sum", Ok(-32602)),
    ] {
        assert!(!names.iter().any(|listed| listed == name), "`{name}` is listed");
        let called = client.call(name, "{}");
        match answer {
            Ok(code) => assert_eq!(called.error_code(), code, "{name}"),
            Err(kind) => assert_eq!(called.error_kind().as_deref(), Some(kind), "{name}"),
        }
    }

    let result = members(&client.call("stations", "{}").result());
    assert!(result["content"].contains("text"), "{result:?}");
    let alert = json!({"city": "Bergen \"west\"", "level": "red"});
    assert_eq!(
        structured(client.call("alert", &alert.to_string()))["to"],
        "Bergen \"west\""
    );
    let forecast = json!({"city": "Sankt Pölten/../x", "days": 3}).to_string();
    assert_eq!(
        structured(client.call("forecast", &forecast)),
        json!({"city": "/cities/Sankt%20P%C3%B6lten%2F..%2Fx/forecast?days=3", "days": []})
    );
    for (tool, arguments, expected) in [
        (
            "everything__echo",
            r#"{"message":"over stdio"}"#,
            "Echo: over stdio",
        ),
        ("remote_echo", r#"{"message":"over HTTP"}"#, "Echo: over HTTP"),
        ("remote_add", r#"{"a":2,"b":3}"#, "The sum of 2 and 3 is 5."),
    ] {
        let result = client.call(tool, arguments).result();
        assert!(result.contains(expected), "{tool}: {result}");
    }
    assert_eq!(gateway.terminate().code(), Some(0));
}

#[test]
fn an_http_tool_reads_from_a_service_that_nobody_here_wrote() {
    let python = ["python3", "python"].into_iter().find(|python| {
        Command::new(python)
            .arg("--version")
            .output()
            .is_ok_and(|output| output.status.success())
    });
    let Some(python) = python else {
        return tool_testkit::skip("no `python3`, whose HTTP server this test reads from");
    };
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("a b.json"),
        r#"{"big":12345678901234567890123,"list":[{"x":1e2}]}"#,
    )
    .unwrap();
    let mut command = Command::new(python);
    command
        .args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1"])
        .current_dir(folder.path());
    let (_process, _, output) = Process::spawn(&mut command);
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).unwrap();
    // Serving HTTP on 127.0.0.1 port 40321 (http://127.0.0.1:40321/) ...
    let port = line.split_whitespace().skip_while(|word| *word != "port").nth(1);
    let port: u16 = port
        .and_then(|port| port.parse().ok())
        .unwrap_or_else(|| panic!("no port in {line:?}"));
    let read = |path: Option<&str>| {
        let mut executor = json!({
            "kind": "http", "url_template": format!("http://127.0.0.1:{port}/{{file}}"), "allow_private": true
        });
        if let Some(path) = path {
            executor["response_path"] = json!(path);
        }
        json!({
            "description": "Reads a file.", "executor": executor,
            "input_schema": {"type": "object", "properties": {"file": {"type": "string"}}, "required": ["file"]},
        })
    };
    let configuration = Configuration::default()
        .tool("read", read(None))
        .tool("pick", read(Some("$.list[0]")));
    let mut gateway = Gateway::stdio(&configuration);
    let file = r#"{"file":"a b.json"}"#;
    let whole = members(&gateway.client.call("read", file).result());
    assert_eq!(
        whole["structuredContent"], r#"{"big":12345678901234567890123,"list":[{"x":1e2}]}"#,
        "as it was sent"
    );
    let part = members(&gateway.client.call("pick", file).result());
    assert_eq!(part["structuredContent"], r#"{"x":1e2}"#);
    let missing = gateway.client.call("read", r#"{"file":"none"}"#);
    // The path was built from the arguments.
    assert_eq!(
        missing.error_kind().as_deref(),
        Some("invalid_arguments"),
        "{missing:?}"
    );
    assert_eq!(gateway.end().code(), Some(0));
}
