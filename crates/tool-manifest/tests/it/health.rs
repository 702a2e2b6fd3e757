//! Health and alerts: accepted settings, and the messages about wrong ones.

use std::time::Duration;

use tool_core::{BoxFuture, Reference, Secret, SecretError, Secrets};
use toolplane::manifest::{Configuration, LoadOptions, Loaded, ServerHealthSpec, Syntax, load};

fn loaded(text: &str) -> Loaded {
    load(&LoadOptions::new().text("a.yaml", Syntax::Yaml, text)).expect("usable")
}

const FULL: &str = "
health: {window: 10m, interval: 15s, timeout: 2s}
alerts:
  success_rate: 99.5%
  mean_latency: 800ms
  min_calls: 20
  cooldown: 0s
  webhook:
    url: https://hooks.example.com/${env:HOOK}
    secret: ${secret:ALERTS}
    headers: {Authorization: 'Bearer ${env:TOKEN}'}
servers:
  files:
    command: x
    health_check_interval: 30s
    health_check_at_start: true
    health_check_tool: query
    health_check_arguments: {text: select 1}
    required: true
";

#[test]
fn everything_that_can_be_said() {
    let configuration = loaded(FULL).configuration;
    let (health, alerts) = (configuration.health, configuration.alerts);
    let seconds = Duration::from_secs;
    assert_eq!(
        (health.window, health.interval, health.timeout),
        (seconds(600), seconds(15), seconds(2))
    );
    assert!((alerts.success_rate - 0.995).abs() < 1e-9);
    assert_eq!(
        (alerts.mean_latency, alerts.min_calls),
        (Duration::from_millis(800), 20)
    );
    assert_eq!(alerts.cooldown, Duration::ZERO);
    let webhook = alerts.webhook.expect("there is one");
    assert_eq!(webhook.url.references().count(), 1);
    assert_eq!(webhook.secret.expect("there is one").references().count(), 1);
    assert_eq!(webhook.headers.len(), 1);
    let server = &configuration.servers[0];
    assert!(server.required);
    assert_eq!(server.health.interval, Some(seconds(30)));
    assert!(server.health.at_start);
    let tool = server.health.tool.as_ref().expect("there is one");
    assert_eq!(
        (&*tool.name, tool.arguments.as_str()),
        ("query", r#"{"text":"select 1"}"#)
    );
}

#[test]
fn what_holds_when_nothing_is_said() {
    let configuration = loaded("servers:\n  files: {command: x}\n").configuration;
    assert_eq!(configuration.alerts, Configuration::default().alerts);
    assert!((configuration.alerts.success_rate - 0.90).abs() < 1e-9);
    assert_eq!(configuration.health.window, Duration::from_secs(300));
    let server = &configuration.servers[0];
    assert_eq!(
        (&server.health, server.required),
        (&ServerHealthSpec::default(), false)
    );
}

#[test]
fn a_server_is_asked_as_often_as_all_unless_it_says_so() {
    let text = "
health: {server_interval: 1m}
servers:
  usual: {command: x, health_check_tool: t}
  own: {command: x, health_check_interval: 10s}
  never: {command: x, health_check_interval: 0s}
";
    let servers = loaded(text).configuration.servers;
    let interval = |name: &str| {
        let server = servers.iter().find(|server| server.name == name);
        server.expect("it is there").health.interval
    };
    assert_eq!(interval("usual"), Some(Duration::from_secs(60)));
    assert_eq!(interval("own"), Some(Duration::from_secs(10)));
    assert_eq!(interval("never"), None);
}

#[test]
fn what_cannot_be_meant() {
    for (line, expected) in [
        ("health: {window: 0s}", "longer than 0"),
        ("health: {windw: 5m}", "`window`"),
        ("alerts: {success_rate: 100%}", "without an end"),
        ("alerts: {min_calls: 0}", "at least 1"),
        ("alerts: {webhook: {secret: '${env:S}'}}", "`url` is missing"),
        ("alerts: {webhook: {url: 'ftp://a'}}", "`https://`"),
        (
            "servers: {a: {command: x, health_check_interval: 10ms}}",
            "once a second",
        ),
        ("servers: {a: {command: x, health_check_tool: t}}", "never called"),
        ("health: {server_interval: 10ms}", "once a second"),
        (
            "servers: {a: {command: x, health_check_arguments: {a: 1}}}",
            "arguments of no tool",
        ),
        (
            "servers: {a: {command: x, health_check_at_start: true, health_check_tool: t, health_check_arguments: 1}}",
            "expected the arguments of a tool",
        ),
    ] {
        let text = format!("\n{line}\n");
        let problems = load(&LoadOptions::new().text("a.yaml", Syntax::Yaml, text)).expect_err(line);
        let said = problems.render(false);
        assert!(
            said.contains(expected) && said.contains("a.yaml:2"),
            "{line}:\n{said}"
        );
    }
}

#[test]
fn a_secret_in_the_file_is_warned_of() {
    let loaded = loaded("alerts: {webhook: {url: 'https://a', secret: abc}}\n");
    let said: Vec<_> = loaded.diagnostics.iter().map(ToString::to_string).collect();
    assert!(
        said.len() == 1 && said[0].contains("for everyone to read"),
        "{said:?}"
    );
}

/// Knows no value.
struct Nothing;

impl Secrets for Nothing {
    fn get<'a>(&'a self, _: &'a Reference) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        Box::pin(async { Ok(None) })
    }

    fn has(&self, _: &Reference) -> Result<bool, SecretError> {
        Ok(false)
    }
}

#[test]
fn missing_values_of_the_webhook_are_found_with_their_lines() {
    let problems = loaded(FULL).check_references(&Nothing);
    let lines: Vec<_> = problems
        .iter()
        .map(|problem| problem.location.as_ref().expect("each has a place").line)
        .collect();
    assert_eq!(lines, [9, 10, 11], "{problems:?}");
}
