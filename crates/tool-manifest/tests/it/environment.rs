//! Environment variables of servers, and values in their command lines.

use proptest::prelude::*;
use toolplane::manifest::{LoadOptions, Loaded, ServerTransport, Severity, Syntax, load};

/// The problems of a file with this server below a key: where each is and what it says.
fn problems_of(key: &str, server: &serde_json::Value) -> Vec<(Severity, String, String)> {
    let text = serde_json::json!({key: {"a": server}}).to_string();
    let problems = match load(&LoadOptions::new().text("a.json", Syntax::Json, &text)) {
        Ok(loaded) => loaded.diagnostics,
        Err(problems) => problems.iter().cloned().collect(),
    };
    let problems = problems.iter().map(|problem| {
        let place = problem.location.as_ref().unwrap();
        assert_eq!(place.line, 1, "{problem}");
        let field = place.field.replacen(key, "", 1);
        (problem.severity, field, problem.to_string())
    });
    problems.collect::<Vec<_>>()
}

/// The problems of a file with this server, in the spelling of toolplane and in that of a client.
fn problems(server: &serde_json::Value) -> Vec<(Severity, String, String)> {
    let of = |key: &str| problems_of(key, server);
    let own = of("servers");
    // In the file of a client, an error concerns its server alone.
    let of_client = of("mcpServers");
    let fields = |problems: &[(Severity, String, String)]| -> Vec<String> {
        problems.iter().map(|(_, field, _)| field.clone()).collect()
    };
    assert_eq!(fields(&of_client), fields(&own));
    assert!(
        of_client
            .iter()
            .all(|(severity, ..)| *severity == Severity::Warning)
    );
    own
}

fn loaded(text: &str) -> Loaded {
    load(&LoadOptions::new().text("a.yaml", Syntax::Yaml, text))
        .unwrap_or_else(|problems| panic!("{}", problems.render(false)))
}

#[test]
fn names_that_no_variable_can_have() {
    for name in ["", "=", "A=B", "=A", "A=", "A\0", "\0", "A\0=B"] {
        for server in [
            serde_json::json!({"command": "x", "env": {name: "y"}}),
            serde_json::json!({"command": "x", "inherit_env": [name]}),
        ] {
            let [(Severity::Error, field, said)] = &problems(&server)[..] else {
                panic!("{server}: {:?}", problems(&server));
            };
            assert!(
                field.starts_with(".a.env") || field.starts_with(".a.inherit_env[0]"),
                "{field}"
            );
            assert!(
                said.contains("cannot be the name of an environment variable"),
                "{said}"
            );
        }
    }
}

#[test]
fn texts_with_nul() {
    for (server, place) in [
        (serde_json::json!({"command": "x\0"}), ".a.command"),
        (
            serde_json::json!({"command": "x", "args": ["a", "b\0c"]}),
            ".a.args[1]",
        ),
        (
            serde_json::json!({"command": "x", "env": {"A": "\0"}}),
            ".a.env.A",
        ),
        (serde_json::json!({"command": "x", "cwd": "/a\0"}), ".a.cwd"),
    ] {
        let [(Severity::Error, field, said)] = &problems(&server)[..] else {
            panic!("{server}: {:?}", problems(&server));
        };
        assert_eq!(field, place);
        assert!(said.contains("NUL"), "{said}");
    }
}

#[test]
fn variables_that_decide_which_code_runs() {
    let dangerous = [
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "LD_AUDIT",
        "DYLD_INSERT_LIBRARIES",
        "NODE_OPTIONS",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "BASH_ENV",
        "ENV",
        "PERL5OPT",
        "RUBYOPT",
        "JAVA_TOOL_OPTIONS",
        "GIT_SSH_COMMAND",
        "GIT_CONFIG_COUNT",
        "PATH",
        "BASH_FUNC_ls%%",
        "npm_config_node_options",
        "NPM_CONFIG_NODE_OPTIONS",
    ];
    for name in dangerous {
        for value in ["x", "${LEFT}", "${env:LEFT}", "${secret:left}", "${file:/left}"] {
            let server = serde_json::json!({"command": "x", "env": {name: value}});
            let found = problems(&server);
            let about: Vec<_> = found
                .iter()
                .filter(|(_, field, _)| field.starts_with(".a.env"))
                .collect();
            let said = format!("`{name}` decides which code the server runs");
            assert!(
                about
                    .iter()
                    .any(|(severity, _, text)| *severity == Severity::Warning && text.contains(&said)),
                "{found:?}"
            );
        }
    }
    for name in [
        "TOKEN",
        "PATHS",
        "MY_LD_PRELOAD",
        "NODE_ENV",
        "DEBUG",
        "HTTPS_PROXY",
        "NODE_EXTRA_CA_CERTS",
    ] {
        let server = serde_json::json!({"command": "x", "env": {name: "y"}, "inherit_env": [name]});
        assert_eq!(problems(&server), [], "{name}");
    }
    let server = serde_json::json!({"command": "x", "inherit_env": ["LD_PRELOAD", "PATH", "HOME"]});
    let [(Severity::Warning, field, _)] = &problems(&server)[..] else {
        panic!("{:?}", problems(&server));
    };
    assert_eq!(field, ".a.inherit_env[0]");
}

#[test]
fn values_in_command_lines() {
    // Clients have only the first three.
    let references = [
        ("${env:API}", true),
        ("${API}", true),
        ("${API:-x}", true),
        ("${env:API:?say it}", false),
        ("${file:/run/s}", false),
        ("${secret:s}", false),
    ];
    for (reference, is_of_clients) in references {
        for text in [
            reference.to_owned(),
            format!("--key={reference}"),
            format!("a{reference}b"),
        ] {
            for (server, place) in [
                (
                    serde_json::json!({"command": "x", "args": ["first", text]}),
                    ".a.args[1]",
                ),
                (serde_json::json!({"command": text}), ".a.command"),
            ] {
                let found = match is_of_clients {
                    true => problems(&server),
                    false => problems_of("servers", &server),
                };
                let about = found.iter().filter(|(_, field, _)| field == place);
                let warned: Vec<_> = about
                    .filter(|(severity, ..)| *severity == Severity::Warning)
                    .collect();
                assert!(
                    matches!(&warned[..], [(_, _, said)] if said.contains("can be seen by everyone on this machine")),
                    "{server}: {found:?}"
                );
            }
        }
    }
    // They stand in the environment of every program anyway.
    let server = serde_json::json!({"command": "${HOME}/x", "args": ["${env:HOME}"], "env": {"A": "${API}"}});
    assert_eq!(problems(&server), []);
    // Escaped in a file of ours, and no escape in the file of a client.
    let escaped = loaded("servers: {a: {command: x, args: ['$${API}']}}");
    assert_eq!(escaped.diagnostics.as_slice(), []);
}

#[test]
fn variables_that_are_handed_down() {
    let inherited = |text: &str| {
        let loaded = loaded(text);
        assert_eq!(loaded.diagnostics.as_slice(), [], "{text}");
        let ServerTransport::Stdio { inherit_env, .. } = &loaded.configuration.servers[0].transport else {
            panic!("{text}");
        };
        (
            inherit_env.clone(),
            loaded.configuration.defaults.inherit_env.clone(),
        )
    };
    let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    assert_eq!(inherited("servers: {a: {command: x}}"), (None, None));
    assert_eq!(
        inherited("servers: {a: {command: x, inherit_env: []}}"),
        (names(&[]), None)
    );
    assert_eq!(
        inherited("defaults: {inherit_env: [B]}\nservers: {a: {command: x, inherit_env: [A_B, c]}}"),
        (names(&["A_B", "c"]), names(&["B"]))
    );
    for (text, said) in [
        (
            "servers: {a: {url: 'http://x/', inherit_env: [A]}}",
            "belongs to a server with a `command`",
        ),
        (
            "servers: {a: {command: x, inherit_env: ['AWS_*']}}",
            "no exact name",
        ),
        ("defaults: {inherit_env: ['A=b']}", "cannot be the name"),
        ("defaults: {inherit_env: A}", "inherit_env"),
    ] {
        let problems = load(&LoadOptions::new().text("a.yaml", Syntax::Yaml, text)).unwrap_err();
        assert!(
            problems.render(false).contains(said),
            "{text}: {}",
            problems.render(false)
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(18), ..ProptestConfig::default() })]

    #[test]
    fn any_name_of_a_variable(name in "[A-Za-z_=\0 é.-]{0,5}", is_inherited in any::<bool>()) {
        let server = match is_inherited {
            true => serde_json::json!({"command": "x", "inherit_env": [name]}),
            false => serde_json::json!({"command": "x", "env": {(name.clone()): "y"}}),
        };
        let is_refused = problems(&server).iter().any(|(severity, ..)| *severity == Severity::Error);
        prop_assert_eq!(is_refused, name.is_empty() || name.contains(['=', '\0']));
    }

    #[test]
    fn any_place_of_a_reference(
        before in "[a-z=/-]{0,5}",
        reference in prop::sample::select(vec!["${API}", "${env:API}", "${API:-}", "${secret:s}", "${file:/f}"]),
        after in "[a-z=/-]{0,5}",
        at in 0_usize..3,
    ) {
        let text = format!("{before}{reference}{after}");
        let mut args = vec!["a".to_owned(); at];
        args.push(text);
        let found = problems_of("servers", &serde_json::json!({"command": "x", "args": args}));
        let place = format!(".a.args[{at}]");
        let is_warned = |(severity, field, _): &(Severity, String, String)| *severity == Severity::Warning && *field == place;
        prop_assert!(found.iter().any(is_warned), "{:?}", found);
    }
}
