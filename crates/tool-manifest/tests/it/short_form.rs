use std::time::Duration;

use toolplane::manifest::{
    EraSpec, HttpTransportSpec, IsolationSpec, LoadOptions, Loaded, ServerTransport, Syntax, load,
};

const EVERYTHING: &str = r#"
# yaml-language-server: $schema=./schema.json
defaults:
  call_timeout: 90s
  max_result_bytes: 1MiB
gateway:
  listen: localhost:8080
  allowed_hosts: [tools.example.com]
  sse_path: /sse
  metrics: true
  metrics_listen: localhost:9464
policy:
  blocklist: ["files__delete*"]
  permissions:
    local: [network.external]
secrets:
  token: ${env:API_TOKEN}
servers:
  files:
    command: npx
    args: ["-y", server-filesystem, 8080, 012]
    env: {PORT: 8080, DEBUG: true, TOKEN: "${secret:token}"}
    exclude: [write_*]
    rename: {read_file: read}
    timeout_ms: 5000
mcp_servers:
  remote:
    url: https://example.com/mcp
    headers: {Authorization: "Bearer ${secret:token}"}
    prefix: ""
    era: modern
tools:
  greet:
    description: Says hello
    version: 1.10
    parameters: {type: object, properties: {name: {type: string}}, required: [name]}
    estimatedLatency: fast
    rateLimit: {requests: 100, period: 1m}
    sla: 99.5%
    requiredPermissions: [greet]
    executor:
      kind: mock
      template: '{"text": {{ name }}}'
      ratio: 1e2
"#;

fn loaded(text: &str) -> Loaded {
    load(&LoadOptions::new().text("toolplane.yaml", Syntax::Yaml, text))
        .unwrap_or_else(|problems| panic!("{}", problems.render(false)))
}

#[test]
fn all_of_it() {
    let loaded = loaded(&EVERYTHING.replace(", 012", ""));
    let configuration = &loaded.configuration;
    assert_eq!(configuration.defaults.call_timeout, Duration::from_secs(90));
    assert_eq!(configuration.defaults.attempt_timeout, Duration::from_secs(30));
    assert_eq!(configuration.defaults.max_result_bytes, 1 << 20);
    assert_eq!(configuration.gateway.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(configuration.gateway.sse_path.as_deref(), Some("/sse"));
    assert!(configuration.gateway.metrics);
    let listen = configuration
        .gateway
        .metrics_listen
        .map(|listen| listen.to_string());
    assert_eq!(listen.as_deref(), Some("127.0.0.1:9464"));
    assert!(configuration.policy.blocklist[0].matches("files__delete_all"));

    let files = &configuration.servers[0];
    assert_eq!(files.prefix(), "files__");
    assert_eq!(files.timeout, Some(Duration::from_secs(5)));
    assert_eq!(files.origin.place, "toolplane.yaml:19");
    let ServerTransport::Stdio { args, env, .. } = &files.transport else {
        panic!()
    };
    assert_eq!(args[2].literal(), Some("8080"));
    assert_eq!(env["DEBUG"].literal(), Some("true"));
    let remote = &configuration.servers[1];
    assert_eq!((remote.prefix().as_str(), remote.era), ("", EraSpec::Modern));

    let tool = &configuration.tools[0];
    assert_eq!(tool.version.as_deref(), Some("1.10"));
    assert_eq!(tool.metadata.sla, Some(99.5));
    assert_eq!(tool.executor.kind, "mock");
    assert_eq!(tool.executor.config["ratio"], 100.0);
    assert_eq!(
        tool.input_schema.as_str(),
        r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}"#
    );
}

#[test]
fn how_a_server_is_connected_to() {
    let loaded = loaded(
        "\
servers:
  a: {url: 'http://y', type: sse}
  b: {url: 'http://y', transport: streamable-http, isolation: session, max_connections: 3}
  c: {url: 'http://y', era: newest, isolation: principal}
",
    );
    let transports = loaded
        .configuration
        .servers
        .iter()
        .map(|server| match server.transport {
            ServerTransport::Http { transport, .. } => transport,
            _ => panic!(),
        });
    let expected = [
        HttpTransportSpec::Sse,
        HttpTransportSpec::Streamable,
        HttpTransportSpec::Either,
    ];
    assert!(transports.eq(expected));
    let [a, b, c] = &loaded.configuration.servers[..] else {
        panic!()
    };
    assert_eq!((a.isolation, a.max_connections), (IsolationSpec::Auto, None));
    assert_eq!(
        (b.isolation, b.max_connections),
        (IsolationSpec::Session, Some(3))
    );
    assert_eq!((c.isolation, c.era), (IsolationSpec::Principal, EraSpec::Newest));
}

#[test]
fn servers_over_websocket() {
    for (text, is_right) in [
        ("url: 'ws://y', type: websocket", true),
        ("url: 'wss://y', transport: websocket", true),
        ("url: 'wss://y', type: ws", true),
        ("url: 'WSS://y', type: websocket", true),
        ("url: 'wss://y'", true),
        ("url: '${URL}', type: websocket", true),
        ("url: 'https://y', type: websocket", false),
        ("url: 'wss://y', type: http", false),
        ("url: 'wss://y', type: sse", false),
        ("url: 'ftp://y', type: ws", false),
        ("command: y, type: ws", false),
    ] {
        for key in ["servers", "mcpServers"] {
            let text = format!("{key}: {{a: {{{text}}}}}");
            let loaded = load(&LoadOptions::new().text("a.yaml", Syntax::Yaml, &text));
            assert_eq!(loaded.is_ok(), is_right, "{text}");
            for server in loaded.iter().flat_map(|loaded| &loaded.configuration.servers) {
                let is_websocket = matches!(
                    server.transport,
                    ServerTransport::Http {
                        transport: HttpTransportSpec::WebSocket,
                        ..
                    }
                );
                assert!(is_websocket, "{text}");
            }
        }
    }
}

#[test]
fn parameters_may_be_a_list() {
    let loaded = loaded(
        "\
tools:
  a:
    description: x
    parameters:
      - {name: city, type: str, required: true, description: Where}
      - {name: days, type: int, minimum: 1, default: 12345678901234567890123}
    executor: {kind: mock}
",
    );
    assert_eq!(
        loaded.configuration.tools[0].input_schema.as_str(),
        r#"{"type":"object","properties":{"city":{"type":"string","description":"Where"},"#.to_owned()
            + r#""days":{"type":"integer","minimum":1,"default":12345678901234567890123}},"required":["city"]}"#
    );
}

#[test]
fn null_counts_as_absent() {
    let loaded = loaded(
        "\
servers:
  a: {command: x, args: , env: , include: , prefix: , disabled: }
tools:
defaults:
policy: {allowlist: }
",
    );
    let server = &loaded.configuration.servers[0];
    assert_eq!(
        (&server.include, &server.prefix, server.disabled),
        (&None, &None, false)
    );
    assert_eq!(loaded.configuration.policy.allowlist, None);
}

#[test]
fn unknown_keys_are_errors_in_our_files_and_warnings_in_those_of_clients() {
    let server = "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"icon\": \"y\"}}";
    let load_json = |text: String| load(&LoadOptions::new().text("a.json", Syntax::Json, text));
    let loaded = load_json(format!("{server}}}")).unwrap();
    assert_eq!(loaded.diagnostics[0].message, "the key `icon` is ignored");
    load_json(format!("{server}, \"tools\": {{}}}}")).unwrap_err();
    load(&LoadOptions::new().text("a.yaml", Syntax::Yaml, format!("{server}}}"))).unwrap_err();
}

#[test]
fn a_number_that_loses_digits_is_warned_of() {
    let loaded =
        loaded("tools: {a: {description: x, executor: {kind: mock, result: 12345678901234567890123}}}");
    assert_eq!(
        loaded.diagnostics[0].message,
        "this number has more digits than are kept"
    );
    assert!(!loaded.has_errors());
}

#[test]
fn schemas_of_arguments_say_that_they_are_objects() {
    for (written, schema) in [
        ("", r#"{"type":"object"}"#),
        ("input_schema: , ", r#"{"type":"object"}"#),
        ("input_schema: true, ", r#"{"type":"object"}"#),
        ("parameters: {}, ", r#"{"type":"object"}"#),
        (
            "parameters: {required: [a]}, ",
            r#"{"required":["a"],"type":"object"}"#,
        ),
    ] {
        let loaded = loaded(&format!(
            "tools: {{a: {{description: x, {written}executor: {{kind: mock}}}}}}"
        ));
        assert_eq!(
            loaded.configuration.tools[0].input_schema.as_str(),
            schema,
            "{written}"
        );
    }
}

#[test]
fn secrets_in_arguments_are_warned_of() {
    let loaded =
        loaded("servers: {a: {command: x, args: ['--key=${secret:k}', '${HOME}'], env: {K: '${secret:k}'}}}");
    let [problem] = loaded.diagnostics.as_slice() else {
        panic!("{:?}", loaded.diagnostics)
    };
    assert_eq!(problem.location.as_ref().unwrap().field, "servers.a.args[0]");
}
