//! Rules that match nothing, and settings without an effect.

use std::{
    io,
    sync::{Arc, Mutex},
};

use mcp_mock::{MockPrompt, MockResource, MockServer, MockTool};
use toolplane::{
    BuildError, Toolplane,
    core::{Caller, Pattern},
    faults::{ChaosLayer, ChaosPlan, ChaosRule},
    manifest::{LoadOptions, Syntax, load},
};
use tracing::instrument::WithSubscriber;

const TOOLS: &str = "
tools:
  read_mail: {description: Reads, executor: {kind: mock, result: 1}}
  send_mail: {description: Sends, executor: {kind: mock, result: 1}}
";

/// The idle rules as texts: setting, pattern and suggestion.
fn idle(plane: &Toolplane) -> Vec<String> {
    let rules = plane.idle_rules().into_iter();
    rules
        .map(|rule| {
            let server = rule.server.map(|server| format!("{server}.")).unwrap_or_default();
            let suggestion = rule.suggestion.unwrap_or_default();
            format!("{server}{} {} -> {suggestion}", rule.setting, rule.pattern)
        })
        .collect()
}

#[tokio::test]
async fn a_rule_of_the_policy_that_matches_nothing_is_found() {
    let policy = "
policy:
  blocklist: [send_mial, read_mail, 'nothing*like*it', Send_mail]
  allowlist: [read_*, sned_*]
  required_permissions: {red_mail: [x], 'send_*': [y]}
  approval: {required: [send, '*']}
";
    let plane = Toolplane::from_yaml(format!("{TOOLS}{policy}")).unwrap();
    assert_eq!(
        idle(&plane),
        [
            "blocklist send_mial -> send_mail",
            "blocklist nothing*like*it -> ",
            "blocklist Send_mail -> send_mail",
            "allowlist sned_* -> send_*",
            "required_permissions red_mail -> read_mail",
            "approval.required send -> ",
        ]
    );
}

#[tokio::test]
async fn a_rule_that_could_match_an_unknown_server_is_not_found_until_its_lists_are_read() {
    let server = MockServer::builder()
        .tool(MockTool::new("write_file"))
        .tool(MockTool::new("hidden"))
        .prompt(MockPrompt::new("ask"))
        .resource(MockResource::new("file:///a"))
        .build();
    let http = server.http().await.unwrap();
    let text = format!(
        "{TOOLS}
servers:
  files:
    url: '{}'
    exclude: [hidden, hiden, 'file:/secret/*', 'demo:*']
    rename: {{write_fil: save}}
  off: {{command: none, disabled: true}}
policy:
  blocklist: [files__wirte_file, 'files__*', 'f*', write_file, 'files__file:/secret/*', 'files__demo:*', off__x, 'fiels__*']
",
        http.url()
    );
    let plane = Toolplane::from_yaml(text).unwrap();
    assert_eq!(
        idle(&plane),
        ["blocklist write_file -> ", "blocklist fiels__* -> "],
        "before anything is known of the server"
    );
    plane.view(&Caller::local()).await;
    assert_eq!(
        idle(&plane),
        [
            "blocklist files__wirte_file -> files__write_file",
            "blocklist write_file -> files__write_file",
            "blocklist files__demo:* -> ",
            "blocklist fiels__* -> files__*",
            "files.exclude hiden -> hidden",
            "files.exclude demo:* -> ",
            "files.rename write_fil -> write_file",
        ]
    );
    plane.shutdown().await;
}

#[tokio::test]
async fn a_protection_that_nothing_gives_is_refused() {
    for (handling, is_refused) in [("none", false), ("anonymize", true), ("encrypt", true)] {
        let text = format!(
            "tools: {{t: {{description: T, pii_handling: {handling}, executor: {{kind: mock, result: 1}}}}}}"
        );
        let built = Toolplane::from_yaml(text);
        let found =
            matches!(built, Err(BuildError::NoProtection { handling: found, .. }) if found == handling);
        assert_eq!(found, is_refused, "{handling}");
        assert_eq!(built.is_err(), is_refused, "{handling}");
    }
}

/// The lines of a log.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    fn all(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().expect("no test panics with it")).into_owned()
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no test panics with it").extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_running_plane_logs_each_rule_that_matches_nothing_once() {
    let server = MockServer::builder().tool(MockTool::new("write_file")).build();
    let http = server.http().await.expect("it listens");
    let text = format!(
        "{TOOLS}
servers: {{files: {{url: '{}', exclude: [hiden]}}}}
policy: {{blocklist: [send_mial, files__wirte_file]}}
",
        http.url()
    );
    let plane = Toolplane::from_yaml(text).expect("it can be set up");
    let lines = Lines::default();
    let log = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || log.clone())
        .finish();
    let of_policy = "WARN toolplane::operate::idle_rules: `policy.blocklist` has `send_mial`, which matches no tool, prompt or resource; did you mean `send_mail`?";
    let of_server = "`policy.blocklist` has `files__wirte_file`, which matches no tool, prompt or resource; did you mean `files__write_file`?";
    let read = async {
        // The watch has looked once before the lists of the server are read.
        tokio::task::yield_now().await;
        assert_eq!(lines.all().matches(of_policy).count(), 1, "{}", lines.all());
        assert!(!lines.all().contains(of_server), "{}", lines.all());
        plane.view(&Caller::local()).await;
        while !lines.all().contains(of_server)
            || !lines
                .all()
                .contains("`exclude` of the server `files` has `hiden`")
        {
            tokio::task::yield_now().await;
        }
    };
    let watched = async {
        tokio::select! {
            biased;
            () = plane.watch_rules() => (),
            () = read => (),
        }
    };
    watched.with_subscriber(subscriber).await;
    assert_eq!(lines.all().matches(of_policy).count(), 1, "{}", lines.all());
    plane.shutdown().await;
}

#[tokio::test]
async fn a_rule_of_the_chaos_plan_that_matches_nothing_is_found() {
    let rule = |tools: &[&str]| {
        let mut rule = ChaosRule::default();
        rule.tools = tools.iter().copied().map(Pattern::new).collect();
        rule.failure_rate = 0.5;
        rule
    };
    let plan = ChaosPlan::new(1, [rule(&["read_mial", "send_*"]), rule(&[])]);
    let loaded = load(&LoadOptions::new().text("test.yaml", Syntax::Yaml, TOOLS)).unwrap();
    let plane = Toolplane::builder()
        .loaded(&loaded)
        .chaos(ChaosLayer::new(plan))
        .build()
        .unwrap();
    let rules = plane.idle_rules();
    assert_eq!(idle(&plane), ["chaos read_mial -> read_mail"]);
    assert_eq!(
        rules[0].to_string(),
        "a rule of the chaos plan has `read_mial`, which matches no tool, prompt or resource"
    );
}
