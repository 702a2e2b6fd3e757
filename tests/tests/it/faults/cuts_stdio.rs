//! Servers over stdio whose pipes break at every possible byte of a call. A break ends its server, so each byte has its
//! own.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{outcome, repeatable};
use crate::support::{Configuration, Era, Gateway, hostile_arguments, hostile_program, tp_fault};

/// One wrapped server for each byte at which a call breaks.
struct Stage {
    folder: TempDir,
    era: Era,
    way: &'static str,
}

impl Stage {
    fn new(era: Era, way: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, era, way }
    }

    fn file(&self, what: &str, after: usize) -> PathBuf {
        self.folder.path().join(format!("{what}-{after}"))
    }

    /// Returns the settings of the server that breaks after this byte, at its first start or at every start.
    fn server(&self, after: usize, is_once: bool) -> Value {
        let fault = format!("cut:{}={after}", self.way);
        let history = self.file("history", after);
        let mut arguments = vec!["stdio", "--fault", &fault, "--matching", "\"act\"", "--history"];
        arguments.push(history.to_str().unwrap());
        if is_once {
            arguments.extend(["--starts", "1"]);
        }
        let notes = self.file("notes", after);
        arguments.extend(["--", hostile_program()]);
        arguments.extend(hostile_arguments(self.era, &notes));
        json!({"command": tp_fault().to_str().unwrap(), "args": arguments})
    }

    /// Returns the number of executions of this server.
    fn n_executions(&self, after: usize) -> usize {
        count(&self.file("notes", after), |line| line == "act")
    }

    fn is_cut(&self, after: usize) -> bool {
        count(&self.file("history", after), |line| {
            line.contains(r#""event":"cut""#)
        }) > 0
    }
}

fn count(file: &PathBuf, is_wanted: impl Fn(&str) -> bool) -> usize {
    let text = fs::read_to_string(file).unwrap();
    text.lines().filter(|line| is_wanted(line)).count()
}

/// Number of servers that run at the same time.
const AT_ONCE: usize = 24;

/// Calls every server, a few at a time, until one does not break. Returns the result of each call.
fn outcomes(
    stage: &Stage,
    gateway: &mut Gateway,
    tool: impl Fn(usize) -> String,
    bytes: &[usize],
) -> Vec<(usize, String)> {
    let mut outcomes = Vec::new();
    for some in bytes.chunks(AT_ONCE) {
        let calls: Vec<_> = some
            .iter()
            .map(|after| (*after, gateway.client.begin_call(&tool(*after), "{}")))
            .collect();
        for (after, call) in calls {
            outcomes.push((after, outcome(&gateway.client.wait(call), "fine")));
        }
        if !stage.is_cut(some[some.len() - 1]) {
            return outcomes;
        }
    }
    panic!("the {} is longer than {} bytes", stage.way, bytes.len())
}

fn breaks_once(era: Era, way: &'static str) {
    let stage = Stage::new(era, way);
    let bytes: Vec<usize> = (0..600).collect();
    let mut configuration = Configuration::default();
    for after in &bytes {
        let mut server = stage.server(*after, false);
        server["retry"] = json!({"max_attempts": 3, "initial_delay": "1ms"});
        configuration = configuration.server(&format!("s{after}"), server);
    }
    let mut gateway = Gateway::stdio(&configuration);
    let mut n_cut = 0;
    for (after, outcome) in outcomes(&stage, &mut gateway, |after| format!("s{after}__act"), &bytes) {
        let n_executions = stage.n_executions(after);
        assert!(n_executions <= 1, "cut:{way}={after}: done {n_executions} times");
        let is_cut = stage.is_cut(after);
        n_cut += usize::from(is_cut);
        match outcome.as_str() {
            "outcome_unknown" => assert!(is_cut, "cut:{way}={after}: nothing broke"),
            // The line end of an answer may be missing.
            "fine" => assert!(!is_cut || way == "response", "cut:{way}={after}"),
            other => panic!("cut:{way}={after}: {other}"),
        }
        if outcome == "fine" || way == "response" {
            assert_eq!(n_executions, 1, "cut:{way}={after}: it was done");
        }
    }
    assert!(n_cut > 60, "{way} broke {n_cut} times only");
    assert_eq!(gateway.end().code(), Some(0));
}

#[test]
fn a_legacy_call_whose_line_breaks_at_any_byte_is_done_once_at_most_and_told_as_unknown() {
    breaks_once(Era::Legacy, "request");
}

#[test]
fn a_legacy_call_whose_answer_breaks_at_any_byte_is_done_once_and_told_as_unknown() {
    breaks_once(Era::Legacy, "response");
}

#[test]
fn a_modern_call_whose_line_breaks_at_any_byte_is_done_once_at_most_and_told_as_unknown() {
    breaks_once(Era::Modern, "request");
}

#[test]
fn a_modern_call_whose_answer_breaks_at_any_byte_is_done_once_and_told_as_unknown() {
    breaks_once(Era::Modern, "response");
}

/// A crashed server rests for a second before its restart, so only some bytes are tested.
#[test]
fn a_repeatable_call_whose_pipes_break_is_made_again_by_the_server_started_again() {
    for way in ["request", "response"] {
        let stage = Stage::new(Era::Legacy, way);
        let bytes: Vec<usize> = (0..600).step_by(11).collect();
        let mut configuration = Configuration::default();
        for after in &bytes {
            let tool = json!({
                "description": "May run twice.",
                "executor": {"kind": "mcp", "server": format!("s{after}"), "tool": "act"},
            });
            configuration = configuration
                .server(&format!("s{after}"), stage.server(*after, true))
                .tool(&format!("read-{after}"), repeatable(tool, 6));
        }
        let mut gateway = Gateway::stdio(&configuration);
        for (after, outcome) in outcomes(&stage, &mut gateway, |after| format!("read-{after}"), &bytes) {
            assert_eq!(outcome, "fine", "cut:{way}={after}");
            assert!((1..=2).contains(&stage.n_executions(after)), "cut:{way}={after}");
        }
        assert_eq!(gateway.end().code(), Some(0));
    }
}
