//! Command endpoints.

use std::time::Duration;

use toolplane::{
    core::{DefinitionPolicy, PinMode},
    manifest::{EndpointSpec, LoadOptions, Loaded, Syntax, load},
    runtime::IdempotencyKeyPlace,
};

fn loaded(text: &str) -> Result<Loaded, String> {
    let options = LoadOptions::new().text("toolplane.yaml", Syntax::Yaml, text);
    load(&options).map_err(|problems| problems.render(false))
}

#[test]
fn every_setting_of_an_endpoint() {
    let text = "
endpoints:
  plain: {command: ./a.sh}
  full:
    command: python3
    args: [-I, '${secret:path}', 7, true]
    env: {TOKEN: '${env:TOKEN}'}
    inherit_env: [HTTPS_PROXY]
    cwd: sub
    timeout_ms: 500
    call_timeout: 5s
    list_timeout_ms: 700
    include: [read_*]
    exclude: [read_b]
    prefix: okso_
    disabled: true
    refresh_interval: 30s
    definitions: withhold
    pin: locked
    list_limits: {tools: 5}
    retry: {max_attempts: 2}
    idempotency: {argument: request_id}
";
    let loaded = loaded(text).unwrap_or_else(|error| panic!("{error}"));
    let [plain, full] = &loaded.configuration.endpoints[..] else {
        panic!("{:?}", loaded.configuration.endpoints)
    };
    let mut expected = EndpointSpec::new("plain", plain.command.clone());
    expected.origin = plain.origin.clone();
    assert_eq!(*plain, expected, "everything has a default");
    assert_eq!(
        (plain.command.literal(), plain.prefix().as_str()),
        (Some("./a.sh"), "plain__")
    );
    assert!(
        plain.origin.place.ends_with("toolplane.yaml:3"),
        "{}",
        plain.origin.place
    );

    assert_eq!(
        (full.args.len(), full.prefix().as_str(), full.disabled),
        (4, "okso_", true)
    );
    assert_eq!(full.inherit_env.as_deref(), Some(&["HTTPS_PROXY".to_owned()][..]));
    assert_eq!(full.cwd.as_ref().and_then(|cwd| cwd.literal()), Some("sub"));
    let milliseconds = Duration::from_millis;
    assert_eq!(
        (full.timeout, full.list_timeout, full.refresh_interval),
        (
            Some(milliseconds(500)),
            Some(milliseconds(700)),
            Some(Duration::from_secs(30))
        )
    );
    assert_eq!(full.overrides.call_timeout, Some(Duration::from_secs(5)));
    assert_eq!(
        full.overrides.get::<IdempotencyKeyPlace>(),
        Some(&IdempotencyKeyPlace::Argument("request_id".to_owned()))
    );
    assert_eq!(
        (full.definitions, full.pin),
        (Some(DefinitionPolicy::Withhold), Some(PinMode::Locked))
    );
    let (include, exclude) = (full.include.as_deref().unwrap(), &full.exclude);
    assert_eq!((include[0].as_str(), exclude[0].as_str()), ("read_*", "read_b"));
    let pointers: Vec<_> = full.templates().into_iter().map(|(pointer, _)| pointer).collect();
    assert_eq!(
        pointers,
        [
            "/command",
            "/args/0",
            "/args/1",
            "/args/2",
            "/args/3",
            "/env/TOKEN",
            "/cwd"
        ]
    );
}

#[test]
fn problems_of_endpoints_have_a_line_and_a_hint() {
    for (text, line, said) in [
        ("endpoints: [a]", 1, "expected a map"),
        ("endpoints:\n  a:\n", 2, "the endpoint `a` is empty"),
        ("endpoints:\n  a: {args: [x]}", 2, "no `command`"),
        ("endpoints:\n  a: {command: x, url: y}", 2, "unknown key `url`"),
        ("endpoints:\n  a: {command: x, timeout_ms: 0}", 2, "longer than 0"),
        (
            "endpoints:\n  a: {command: x, refresh_interval: 1s}",
            2,
            "every 10 s at most",
        ),
        (
            "endpoints:\n  a: {command: x, prefix: 'a b'}",
            2,
            "cannot begin a tool's name",
        ),
        ("endpoints:\n  a: {command: \"x\\0\"}", 2, "NUL"),
        (
            "servers: {a: {command: x}}\nendpoints:\n  a: {command: x}",
            3,
            "has the name of a server",
        ),
        (
            "endpoints:\n  a: {command: x, env: {A=: b}}",
            2,
            "cannot be the name of an environment variable",
        ),
    ] {
        let error = loaded(text).map(|loaded| loaded.configuration).expect_err(text);
        assert!(
            error.contains(said) && error.contains(&format!("toolplane.yaml:{line}:")),
            "{text}\n{error}"
        );
    }
    // In two files.
    let options = LoadOptions::new()
        .text("a.yaml", Syntax::Yaml, "endpoints: {e: {command: x}}")
        .text("b.yaml", Syntax::Yaml, "endpoints: {e: {command: y}}");
    let error = load(&options).expect_err("twice").render(false);
    assert!(
        error.contains("the endpoint `e` is configured twice") && error.contains("a.yaml:1:"),
        "{error}"
    );
}

#[test]
fn the_variable_is_a_command_line() {
    let endpoint = EndpointSpec::from_variable("toolplane endpoint --no-gateway '$HOME' \"a b\"").unwrap();
    let args: Vec<_> = endpoint.args.iter().map(|arg| arg.literal().unwrap()).collect();
    assert_eq!(endpoint.command.literal(), Some("toolplane"));
    assert_eq!(args, ["endpoint", "--no-gateway", "$HOME", "a b"]);
    assert_eq!(
        (endpoint.name.as_str(), endpoint.origin.place.as_str()),
        ("endpoint", "$MCP_ENDPOINT")
    );
    for wrong in ["", "  ", "a | b", "a $X", "'a"] {
        assert!(EndpointSpec::from_variable(wrong).is_err(), "{wrong}");
    }
}
