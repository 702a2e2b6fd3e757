//! Lists of tools and servers.

use std::net::TcpListener;

use base64::{Engine as _, prelude::BASE64_STANDARD as BASE64};
use serde_json::Value;

use crate::binary::{BINARY, Place};

/// Returns a server that works, one that fails, one that is missing and one that is disabled.
fn place() -> Place {
    let place = Place::with(&format!(
        r#"
tools:
  ours:
    title: Our own
    description: |
      Does what we want. Slowly.
      And well.
    version: 1.10
    input_schema:
      type: object
      properties:
        how: {{enum: [well, badly], description: How to do it}}
        often: {{type: integer, description: How often}}
      required: [often]
    tags: [a, b]
    read_only: true
    rate_limit: {{requests: 10, period: 1m}}
    sla: 99.5%
    executor: {{kind: mock, result: 1}}
servers:
  inner: {{command: {BINARY}, args: [-c, inner.yaml, serve, --stdio], rename: {{two: second}}}}
  broken: {{command: sh, args: ["-c", "echo first >&2; echo no luck >&2; exit 3"]}}
  absent: {{command: no-such-program}}
  idle: {{command: sh, disabled: true}}
"#
    ));
    place.write(
        "inner.yaml",
        "tools: {one: {description: The first, executor: {kind: mock, result: 1}}, two: {description: The second, executor: {kind: mock, result: 2}}}",
    );
    place
}

#[test]
fn tools() {
    let place = place();
    let run = place.run(&["tools", "ls"]);
    insta::assert_snapshot!(run.transcript(&["tools", "ls"]));

    let list = place.run(&["tools", "ls", "-o", "json"]).json();
    let names: Vec<&str> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["inner__one", "inner__second", "ours"]);
    assert_eq!(list[0]["server"], "inner");
    assert_eq!(list[2]["source"], "toolplane.yaml:3");

    let missing = place.run(&["tools", "ls", "--server", "broken"]);
    assert_eq!((missing.code, missing.stdout.as_str()), (6, ""));
    assert!(
        missing.stderr.contains("no luck") && !missing.stderr.contains("no-such-program"),
        "{missing:?}"
    );

    // Programs read stderr too: each line is a JSON object.
    let run = place.run(&["tools", "ls", "-o", "json"]);
    let warnings: Vec<Value> = run
        .stderr
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(
        warnings[0]["warning"].as_str().unwrap().contains("`broken`"),
        "{run:?}"
    );

    let list = place.run(&["tools", "ls", "--server", "inner", "-o", "yaml", "-q"]);
    assert_eq!(list.code, 0);
    assert!(list.data().starts_with("- name: inner__one\n"), "{list:?}");
    assert!(!list.data().contains("ours"));
}

#[test]
fn one_tool() {
    let place = place();
    insta::assert_snapshot!(place.run(&["tools", "show", "ours"]).data());
    let shown = place
        .run(&["tools", "show", "inner__second", "-o", "json"])
        .json();
    assert_eq!(shown["definition"]["name"], "inner__second");
    assert_eq!(shown["trust"], "upstream");
    assert_eq!(shown["digest"].as_str().unwrap().len(), 64);
}

#[test]
fn servers() {
    let place = place();
    let table = place.run(&["servers", "ls"]);
    assert_eq!(table.code, 0);
    for line in [
        ["inner", "ready"],
        ["broken", "failed"],
        ["absent", "failed"],
        ["idle", "disabled"],
    ] {
        let found = table.stdout.lines().find(|row| row.starts_with(line[0])).unwrap();
        assert!(found.contains(line[1]), "{table:?}");
    }
    let list = place.run(&["servers", "ls", "-o", "json"]).json();
    let by_name = |name: &str| {
        list.as_array()
            .unwrap()
            .iter()
            .find(|server| server["name"] == name)
            .unwrap()
    };
    assert_eq!(by_name("inner")["n_tools"], 2);
    assert_eq!(by_name("broken")["detail"], "first\nno luck");
    assert!(
        by_name("absent")["reason"]
            .as_str()
            .unwrap()
            .contains("no-such-program")
    );
    assert_eq!(by_name("idle")["state"], "disabled");
}

#[test]
fn a_server_cannot_write_to_the_terminal() {
    let place = Place::with(
        "servers: {evil: {command: sh, args: ['-c', \"printf '\\\\033[2J\\\\007gone' >&2; exit 1\"]}}",
    );
    for arguments in [["tools", "ls"], ["servers", "ls"], ["doctor", "-q"]] {
        let run = place.run(&arguments);
        assert!(
            !run.stderr.contains('\u{1b}') && !run.stdout.contains(['\u{1b}', '\u{7}']),
            "{run:?}"
        );
    }
    assert!(place.run(&["tools", "ls"]).stderr.contains("gone"));
}

#[test]
fn nothing_to_list() {
    let place = Place::with("tools: {}");
    let run = place.run(&["tools", "ls"]);
    assert_eq!(
        (run.code, run.stdout.as_str(), run.stderr.as_str()),
        (0, "", "no tools\n")
    );
    assert_eq!(place.run(&["tools", "ls", "-o", "json"]).data(), "[]\n");
    assert_eq!(place.run(&["servers", "ls", "-o", "json"]).data(), "[]\n");
}

fn findings(place: &Place) -> (i32, Vec<Value>) {
    let run = place.run(&["doctor", "-o", "json"]);
    assert_eq!(run.stderr, "");
    (run.code, run.json().as_array().unwrap().clone())
}

/// Returns the finding of this name. The machine's own certificates vary.
fn of<'a>(findings: &'a [Value], name: &str) -> &'a Value {
    findings
        .iter()
        .find(|finding| finding["name"] == name)
        .unwrap_or_else(|| panic!("{name}: {findings:#?}"))
}

#[test]
fn the_doctor_finds_what_is_wrong_and_says_what_to_do() {
    let (code, findings) = findings(&place());
    assert_eq!(code, 1);
    assert_eq!(of(&findings, "configuration")["status"], "ok");
    assert_eq!(of(&findings, "server inner")["status"], "ok");
    assert_eq!(of(&findings, "server broken")["status"], "fail");
    assert_eq!(of(&findings, "server broken")["detail"], "first\nno luck");
    assert_eq!(of(&findings, "program sh")["status"], "ok");
    assert_eq!(of(&findings, "program no-such-program")["status"], "fail");
    for finding in findings.iter().filter(|finding| finding["status"] != "ok") {
        assert!(
            finding["fix"].as_str().is_some_and(|fix| !fix.is_empty()),
            "{finding}"
        );
    }
}

#[test]
fn the_doctor_is_content() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let place = Place::with(&format!("gateway: {{listen: '{address}'}}"));
    let authorities = place.write("roots.pem", "");
    let place = place.variable("SSL_CERT_FILE", authorities.to_str().unwrap());
    let (code, found) = findings(&place);
    assert_eq!(
        (code, of(&found, "gateway")["status"].as_str()),
        (0, Some("warn")),
        "{found:#?}"
    );
    drop(listener);
    let (code, found) = findings(&place);
    assert_eq!(
        (code, of(&found, "gateway")["status"].as_str()),
        (0, Some("ok")),
        "{found:#?}"
    );
}

#[test]
fn the_doctor_goes_on_when_a_server_cannot_be_used() {
    let place = Place::with(
        "servers: {a: {command: sh, env: {T: '${NO_SUCH}'}}, b: {command: sh, args: ['-c', 'exit 9']}}",
    );
    let (code, findings) = findings(&place);
    assert_eq!(code, 1);
    assert_eq!(of(&findings, "configuration")["status"], "warn");
    assert!(
        of(&findings, "server b")["message"]
            .as_str()
            .unwrap()
            .contains("exit status: 9")
    );

    let page = place.run(&["doctor"]);
    assert_eq!(page.code, 1);
    assert!(
        page.stdout.contains("warn  configuration: ") && page.stdout.contains("      fix: "),
        "{page:?}"
    );
}

/// A configuration of another MCP client works unchanged.
#[test]
fn the_file_of_an_mcp_client() {
    let place = Place::empty();
    let file = serde_json::json!({"mcpServers": {"inner": {
        "command": BINARY, "args": ["-c", "inner.yaml", "serve", "--stdio"], "autoApprove": ["one"]}}});
    place.write("mcp.json", format!("// written by an editor\n{file}"));
    place.write(
        "inner.yaml",
        "tools: {one: {description: The first, executor: {kind: mock, result: 1}}}",
    );
    let run = place.run(&["-c", "mcp.json", "call", "inner__one", "-o", "json"]);
    assert_eq!(
        (run.code, run.json()["content"][0]["text"].clone()),
        (0, "1".into()),
        "{run:?}"
    );
    assert!(run.stderr.contains("autoApprove"), "{run:?}");
}

#[test]
fn what_a_server_says_at_its_end_is_shown_without_its_secrets() {
    for env in [
        "TOKEN: '${LEAKY_TOKEN}'",
        "TOKEN: hunter2-hunter2",
        "TOKEN: '${LEAKY}'",
    ] {
        let place = Place::with(&format!(
            "servers: {{leaky: {{command: sh, args: ['-c', 'echo refused: $TOKEN >&2; exit 3'], env: {{{env}}}}}}}"
        ))
        .variable("LEAKY_TOKEN", "hunter2-hunter2")
        .variable("LEAKY", "hunter2-hunter2");
        for arguments in [
            &["servers", "ls", "-o", "json"][..],
            &["doctor"],
            &["tools", "ls", "-vvv"],
        ] {
            let run = place.run(arguments);
            let all = format!("{}{}", run.stdout, run.stderr);
            assert!(
                all.contains("refused: [redacted]") && !all.contains("hunter2"),
                "{env} {arguments:?}: {run:?}"
            );
        }
    }
}

/// The last line of a server's stderr appears as the reason of a failed start, in health and in warnings, and all lines
/// are logged.
#[test]
fn encoded_secrets_of_a_server_are_shown_nowhere() {
    const SECRET: &str = "hunter2+/\u{e9}~hunter2";
    let hex: String = SECRET.bytes().map(|byte| format!("{byte:02x}")).collect();
    let percent: String = SECRET.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let escapes: String = SECRET
        .encode_utf16()
        .map(|unit| format!("\\u{unit:04x}"))
        .collect();
    let base64 = BASE64.encode(SECRET);
    let shifted = BASE64.encode(format!("x{SECRET}"));
    let hex_of_base64: String = base64.bytes().map(|byte| format!("{byte:02X}")).collect();
    let spellings = [
        SECRET.to_owned(),
        hex,
        percent,
        escapes,
        base64,
        shifted,
        hex_of_base64,
    ];
    let place =
        Place::with("servers: {leaky: {command: sh, args: [say.sh], env: {TOKEN: '${LEAKY_TOKEN}'}}}")
            .variable("LEAKY_TOKEN", SECRET);
    for spelling in spellings {
        place.write(
            "say.sh",
            format!("echo 'first {spelling} {spelling}' >&2; echo 'refused: {spelling}' >&2; exit 3"),
        );
        for (arguments, says_why) in [
            (&["servers", "ls"][..], true),
            (&["servers", "ls", "-o", "json"], true),
            (&["health", "--direct"], false),
            (&["health", "--direct", "-o", "json"], false),
            (&["doctor"], true),
            (&["tools", "ls", "-vvv"], true),
            (&["tools", "ls", "-vvv", "--log-format", "json"], true),
            (&["call", "leaky__tool", "-vvv"], true),
        ] {
            let run = place.run(arguments);
            let all = format!("{}{}", run.stdout, run.stderr);
            assert!(
                !says_why || all.contains("[redacted]"),
                "{arguments:?} {spelling}: {run:?}"
            );
            assert!(!all.contains(&spelling[2..]), "{arguments:?} {spelling}: {run:?}");
        }
    }
}

/// One run uses the lists that an earlier run kept; `servers forget` deletes them.
#[test]
fn lists_are_kept_and_forgotten() {
    let place = place();
    let n_tools = || {
        let list = place.run(&["servers", "ls", "--no-start", "-o", "json"]).json();
        (
            list[0]["n_tools"].as_u64().unwrap(),
            list[0]["state"].as_str().unwrap().to_owned(),
        )
    };
    assert_eq!(n_tools(), (0, "not started".to_owned()));
    place.run(&["tools", "ls"]);
    assert_eq!(n_tools(), (2, "not started".to_owned()));
    let folder = place.path().join(".cache/toolplane/lists");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    for (arguments, n) in [(&["broken"][..], 0), (&["inner"], 1), (&[], 0)] {
        let arguments = [&["servers", "forget", "-o", "json"], arguments].concat();
        assert_eq!(place.run(&arguments).json()["forgotten"], n, "{arguments:?}");
    }
    assert_eq!(n_tools(), (0, "not started".to_owned()));
    // A tool that is missing in the list is searched by starting its server.
    assert_eq!(place.run(&["call", "inner__one", "-o", "json"]).code, 0);
    assert_eq!(n_tools(), (2, "not started".to_owned()));
    let run = place.run(&["servers", "forget"]);
    assert!(
        run.stdout.starts_with("deleted 1 file with kept lists from "),
        "{run:?}"
    );
}

/// Returns the output of a server that prints its environment, and fails.
fn told(name: &str, settings: &str) -> String {
    format!(
        r#"servers: {{a: {{command: sh, args: ['-c', 'echo first >&2; echo "[$${{{name}-unset}}]" >&2; exit 3']{settings}}}}}"#
    )
}

#[test]
fn servers_get_the_variables_of_authorities_and_proxies() {
    for (name, settings, expected) in [
        ("NODE_EXTRA_CA_CERTS", "", "[/ca.pem]"),
        ("NODE_EXTRA_CA_CERTS", ", inherit_env: []", "[unset]"),
        ("NODE_EXTRA_CA_CERTS", ", inherit_env: [OTHER]", "[unset]"),
        (
            "NODE_EXTRA_CA_CERTS",
            ", env: {NODE_EXTRA_CA_CERTS: /own.pem}",
            "[/own.pem]",
        ),
        ("OTHER", "", "[unset]"),
        ("OTHER", ", inherit_env: [OTHER]", "[other]"),
        ("https_proxy", "", "[http://[redacted]@proxy:3128]"),
    ] {
        let place = Place::with(&told(name, settings))
            .variable("NODE_EXTRA_CA_CERTS", "/ca.pem")
            .variable("https_proxy", "http://grace:hopper-1906@proxy:3128")
            .variable("OTHER", "other");
        let run = place.run(&["servers", "ls"]);
        assert!(
            run.stdout.contains(&format!("; stderr: {expected}")),
            "{name} {settings}: {run:?}"
        );
    }
}

#[test]
fn credentials_of_proxies_are_hidden() {
    let said = "user grace, password hopper-1906 or hopper%2D1906, Basic Z3JhY2U6aG9wcGVyLTE5MDY=";
    let place = Place::with(&format!(
        "servers: {{a: {{command: sh, args: ['-c', 'echo \"{said}\" >&2; exit 3']}}}}"
    ))
    .variable("HTTPS_PROXY", "http://grace:hopper%2D1906@proxy:3128");
    for arguments in [
        &["servers", "ls"][..],
        &["servers", "ls", "-o", "json"],
        &["doctor"],
        &["tools", "ls", "-vvv"],
    ] {
        let run = place.run(arguments);
        let all = format!("{}{}", run.stdout, run.stderr);
        assert!(
            all.contains("user [redacted], password [redacted] or [redacted], "),
            "{arguments:?}: {run:?}"
        );
        for hidden in ["grace", "hopper", "Z3JhY2U6aG9wcGVyLTE5MDY"] {
            assert!(!all.contains(hidden), "{arguments:?}: {hidden}: {run:?}");
        }
    }
}

/// The last line of a server may contain terminal escape sequences.
#[test]
fn the_last_line_of_a_server_cannot_write_to_the_terminal() {
    let place = Place::with(
        r#"servers: {a: {command: sh, args: ['-c', 'printf "cause\n\033[2Jwhy \033]0;x\007\n \n" >&2; exit 3']}}"#,
    );
    let run = place.run(&["servers", "ls"]);
    assert!(
        run.stdout.contains(r"; stderr: \u{1b}[2Jwhy \u{1b}]0;x\u{7}"),
        "{run:?}"
    );
}
