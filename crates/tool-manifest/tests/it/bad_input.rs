//! Diagnostics of invalid files, compared word for word.

use toolplane::manifest::{Diagnostics, LoadOptions, Syntax, load};

fn problems(name: &str, text: &str) -> Diagnostics {
    let syntax = Syntax::from_path(name.as_ref());
    match load(&LoadOptions::new().text(name, syntax, text)) {
        Ok(loaded) => panic!("{text}\nloads as {:?}", loaded.configuration),
        Err(problems) => problems,
    }
}

/// Compares the diagnostics with the snapshot of this name. The snapshot omits the input: the diagnostics show its
/// lines.
#[track_caller]
fn assert_said(name: &str, said: &str) {
    insta::with_settings!({omit_expression => true}, { insta::assert_snapshot!(name, said) });
}

fn check(texts: &[(&str, &str)]) -> String {
    let rendered = texts
        .iter()
        .map(|(name, text)| problems(name, text).render(false));
    rendered.collect::<Vec<_>>().join("\n\n=====\n\n")
}

#[test]
fn two_problems_in_one_run() {
    assert_said(
        "two_problems_in_one_run",
        &check(&[(
            "toolplane.yaml",
            "\
servers:
  files:
    comand: npx
    args: -y
tools:
  greet:
    description: Says hello
    retryable: no
    timeout_ms: soon
    executor: {kind: mock, result: hello}
",
        )]),
    );
}

#[test]
fn yaml_that_is_no_yaml() {
    assert_said(
        "yaml_that_is_no_yaml",
        &check(&[
            ("tabs.yaml", "tools:\n\tgreet:\n\t\tdescription: x\n"),
            (
                "colon.yaml",
                "tools:\n  greet:\n    description: Says hello: always\n",
            ),
            ("open.yaml", "tools: {greet: [\n"),
            ("quote.yaml", "tools: \"greet\n"),
            ("alias.yaml", "policy:\n  blocklist: [*everything]\n"),
            ("merge.yaml", "base: &base {a: 1}\ntools:\n  <<: *base\n"),
            ("tag.yaml", "tools: !!python/object:os.system {}\n"),
            ("key.yaml", "? [a, b]\n: c\n"),
        ]),
    );
}

#[test]
fn json_that_is_no_json() {
    assert_said(
        "json_that_is_no_json",
        &check(&[
            ("open.json", "{\"tools\": {"),
            ("bare.json", "{tools: {}}"),
            ("word.json", "{\"tools\": nil}"),
            ("number.json", "{\"tools\": 012}"),
            ("colon.json", "{\"tools\" {}}"),
            ("comma.json", "{\"tools\": {} \"servers\": {}}"),
            ("rest.json", "{} {}"),
            ("surrogate.json", "{\"policy\": {\"blocklist\": [\"\\ud800\"]}}"),
            ("wide.json", "[\"\\ud800𝄞\"]"),
            ("comment.json", "{} /* and so on"),
            ("twice.json", "{\"tools\": {},\n \"tools\": {}}"),
        ]),
    );
}

#[test]
fn values_of_the_wrong_kind() {
    assert_said(
        "values_of_the_wrong_kind",
        &check(&[
            ("list.yaml", "- tools\n"),
            ("text.yaml", "just a text\n"),
            (
                "octal.yaml",
                "servers: {a: {command: x, args: [012, 09, .nan]}}\n",
            ),
            (
                "title.yaml",
                "tools: {a: {title: 5, description: [x], executor: http}}\n",
            ),
            (
                "enum.yaml",
                "tools: {a: {description: x, latency: fsat, pii_handling: 1, executor: {kind: mock}}}\n",
            ),
            (
                "units.yaml",
                "defaults: {call_timeout: 10, start_timeout: 0s, max_result_bytes: lots}\ngateway: {listen: here}\n",
            ),
            ("sse.yaml", "gateway: {sse_path: sse}\n"),
            (
                "retry.yaml",
                "defaults: {retry: {max_attempts: 0, initial_delay: 0s, max_dealy: 1s}, breaker: {max_failures: 0, failure_share: 0%, pause: 1}}\n",
            ),
            ("arguments.yaml", "defaults: {arguments: coerse}\n"),
            ("taken.yaml", "gateway: {sse_path: /mcp}\n"),
            (
                "schema.yaml",
                "tools: {a: {description: x, input_schema: object, executor: {kind: mock}}}\n",
            ),
            (
                "both.yaml",
                "tools: {a: {description: x, inputSchema: {}, input_schema: {}, executor: {kind: mock}}}\n",
            ),
            (
                "negative.yaml",
                "tools: {a: {description: x, timeout_ms: -5, cost_per_call: -1, executor: {kind: mock}}}\n",
            ),
        ]),
    );
}

#[test]
fn things_that_are_missing_or_clash() {
    assert_said(
        "things_that_are_missing_or_clash",
        &check(&[
            (
                "tool.yaml",
                "tools:\n  a: {}\n  b:\n  c: {description: x, executor: {type: mock}}\n",
            ),
            (
                "name.yaml",
                "tools:\n  read file: {description: x, executor: {kind: mock}}\n",
            ),
            (
                "twice.yaml",
                "servers: {a: {command: x}}\nmcp_servers: {a: {command: y}}\n",
            ),
            (
                "rate.yaml",
                "tools: {a: {description: x, rate_limit: {requests: 5}, executor: {kind: mock}}}\n",
            ),
            (
                "parameters.yaml",
                "tools: {a: {description: x, parameters: {}, input_schema: {}, executor: {kind: mock}}}\n",
            ),
        ]),
    );
}

#[test]
fn servers() {
    assert_said(
        "servers",
        &check(&[
            ("none.yaml", "servers:\n  a: {args: [x]}\n  b:\n"),
            ("both.yaml", "servers: {a: {command: x, url: 'http://y'}}\n"),
            (
                "sse.yaml",
                "servers:\n  a: {url: 'http://y', transport: sse, era: modern}\n  b: {url: 'http://y', type: websocket}\n  c: {url: 'http://y', type: stdoi}\n  d: {command: x, type: sse}\n  e: {command: x, isolation: sesion, max_connections: 0}\n",
            ),
            (
                "against.yaml",
                "servers: {a: {command: x, type: http, headers: {A: b}}}\n",
            ),
            ("url.yaml", "servers: {a: {url: 'ftp://y', env: {A: b}}}\n"),
            (
                "template.yaml",
                "servers:\n  a: {command: x, env: {A: '${OPEN', B: '${vault:x}', C: '${input:key}', D: }}\n",
            ),
            (
                "rename.yaml",
                "servers: {a: {command: x, rename: {read: 'read file'}, prefix: 'a.'}}\n",
            ),
            ("secret.yaml", "secrets: {a: '${secret:b}', 'a b': '${env:B}'}\n"),
        ]),
    );
}

#[test]
fn keys_of_other_spellings() {
    assert_said(
        "keys_of_other_spellings",
        &check(&[
            (
                "tools.yaml",
                "\
tools:
  short:
    description: PromptKit's keys without its manifest
    mock_result: {a: 1}
  camel:
    description: x
    argsSchema: {type: object}
    readOnlyHint: true
    mode: mock
    executor: {kind: mock, result: 1}
  other:
    description: x
    zzzzzzzz: 1
    executor: {kind: mock, result: 1}
",
            ),
            (
                "servers.yaml",
                "\
servers:
  one:
    cmd: npx
    arguments: [-y]
    environment: {A: b}
    alwaysAllow: [x]
    zzzzzzzz: 1
",
            ),
            (
                "top.yaml",
                "tools: {}\ncontextServers: {a: {command: b}}\nallowedOrigins: []\nzzzzzzzz: 1\n",
            ),
        ]),
    );
}

#[test]
fn manifests() {
    assert_said(
        "manifests",
        &check(&[
            ("version.yaml", "apiVersion: toolplane.dev/v2\nkind: Tool\n"),
            ("kind.yaml", "apiVersion: toolplane.dev/v1\nkind: Tol\n"),
            ("no-kind.yaml", "apiVersion: toolplane.dev/v1\n"),
            (
                "empty.yaml",
                "apiVersion: toolplane.dev/v1\nkind: Tool\nmetadata: {labels: {a: b}}\n",
            ),
            (
                "exec.yaml",
                "apiVersion: promptkit.altairalabs.ai/v1alpha1\nkind: Tool\nmetadata: {name: a}\nspec: {description: x, mode: exec, exec: {command: ls}}\n",
            ),
            (
                "parts.yaml",
                "apiVersion: promptkit.altairalabs.ai/v1alpha1\nkind: Tool\nmetadata: {name: a}\nspec: {description: x, mode: mock, mock_parts: []}\n",
            ),
            (
                "multimodal.yaml",
                "apiVersion: promptkit.altairalabs.ai/v1alpha1\nkind: Tool\nmetadata: {name: a}\nspec: {description: x, mode: live, http: {url: x, multimodal: {enabled: true}}}\n",
            ),
            (
                "mcp.yaml",
                "apiVersion: promptkit.altairalabs.ai/v1alpha1\nkind: Tool\nmetadata: {name: a}\nspec: {description: x, mode: mcp}\n",
            ),
            (
                "kiwi.yaml",
                "tool_id: a\ntool_type: javascript\ndescription: x\nparameters:\n  - {name: b, type: strng}\n  - {type: string}\n",
            ),
            (
                "kiwi-mcp.yaml",
                "tool_id: a\ntool_type: mcp\ndescription: x\nexecutor_config: {mcp_server: s}\n",
            ),
            (
                "contradiction.yaml",
                "servers: {s: {command: other}}\n---\ntool_id: a\ntool_type: mcp\ndescription: x\nexecutor_config: {mcp_server: s, mcp_tool: t, command: npx}\n",
            ),
        ]),
    );
}

#[test]
fn a_tool_that_is_not_below_tools() {
    assert_said(
        "a_tool_that_is_not_below_tools",
        &check(&[(
            "greet.yaml",
            "name: greet\nversion: 1.0.0\ndescription: Says hello\nexecutor: {kind: mock, result: hello}\n",
        )]),
    );
}

#[test]
fn schemas_of_arguments() {
    assert_said(
        "schemas_of_arguments",
        &check(&[
            (
                "list.yaml",
                "tools: {a: {description: x, input_schema: {type: array}, executor: {kind: mock}}}\n",
            ),
            (
                "never.yaml",
                "tools: {a: {description: x, input_schema: false, executor: {kind: mock}}}\n",
            ),
            (
                "config.yaml",
                "tool_id: a\ntool_type: api\ndescription: x\nexecutor_config: GET\n",
            ),
            (
                "http.yaml",
                "apiVersion: promptkit.altairalabs.ai/v1\nkind: Tool\nmetadata: {name: a}\nspec: {description: x, mode: live, http: GET}\n",
            ),
        ]),
    );
}

#[test]
fn an_empty_file_is_only_warned_of() {
    for text in ["", "\n", "# nothing yet\n", "---\n"] {
        let loaded = load(&LoadOptions::new().text("a.yaml", Syntax::Yaml, text)).unwrap();
        assert_eq!(loaded.diagnostics.len(), 1, "{text:?}");
        assert_eq!(
            loaded.diagnostics[0].to_string(),
            "a.yaml:1:1: there is nothing in this file"
        );
    }
}

#[test]
fn a_problem_as_json() {
    let problems = problems("a.yaml", "tools:\n  a: {descripton: x, executor: {kind: mock}}\n");
    insta::assert_snapshot!(serde_json::to_string_pretty(&problems.iter().collect::<Vec<_>>()).unwrap());
    insta::assert_snapshot!(problems.to_string(), @"a.yaml:2:7: unknown key `descripton`");
}
