//! Differences of two texts for people, without secrets.

use std::path::Path;

use similar::{ChangeTag, TextDiff};
use toolplane::core::{hide_credentials, names_secret};

use crate::clients::edit::string_length;

/// Number of unchanged lines around a change.
const CONTEXT: usize = 2;
/// Maximum length of a line, in characters. Files of machines may have one line.
const MAX_LINE: usize = 200;
/// Text instead of a secret.
const HIDDEN: &str = "[redacted]";

/// Returns the unified diff of two versions of a file. Values whose keys name a secret are hidden.
pub(crate) fn unified(path: &Path, old: &str, new: &str) -> String {
    let diff = TextDiff::from_lines(old, new);
    let name = path.display();
    let mut text = format!("--- {name}\n+++ {name}\n");
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        text.push_str(&format!("{}\n", hunk.header()));
        for change in hunk.iter_changes() {
            let sign = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            let line = change.value().trim_end_matches(['\r', '\n']);
            text.push_str(&format!("{sign}{}\n", shown(line)));
        }
    }
    text
}

/// Returns a line without secrets, cut to a width.
fn shown(line: &str) -> String {
    let line = without_values(line);
    let line = hide_credentials(&line);
    match line.char_indices().nth(MAX_LINE) {
        Some((end, _)) => format!("{} …", &line[..end]),
        None => line.into_owned(),
    }
}

/// Hides the values whose keys name a secret: members of JSON anywhere in the line, and a key of TOML or YAML that begins it.
fn without_values(line: &str) -> String {
    let mut shown = String::new();
    let mut rest = line;
    let mut key = "";
    while let Some(start) = rest.find('"') {
        let (before, quoted) = rest.split_at(start);
        let (quoted, after) = quoted.split_at(string_length(quoted));
        let is_value = !key.is_empty() && before.trim() == ":";
        shown.push_str(before);
        match is_value && names_secret(key) {
            true => shown.push_str(&format!("\"{HIDDEN}\"")),
            false => shown.push_str(quoted),
        }
        key = if is_value { "" } else { quoted.trim_matches('"') };
        rest = after;
    }
    shown.push_str(rest);
    let Some((name, value)) = shown.split_once(['=', ':']) else {
        return shown;
    };
    let key = name.trim().trim_start_matches("- ").trim_matches(['"', '\'']);
    let value = value.trim();
    let is_key = key
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    let is_shown = value.is_empty() || value.starts_with(['{', '[', '|', '>']) || value.contains(HIDDEN);
    match is_key && names_secret(key) && !is_shown {
        true => format!("{}: {HIDDEN}", name.trim_end()),
        false => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_around_a_change_are_hidden() {
        for (line, expected) in [
            (r#"    "API_KEY": "hunter2","#, r#"    "API_KEY": "[redacted]","#),
            (
                r#"{"env":{"GITHUB_TOKEN":"hunter\"2","LANG":"C"}}"#,
                r#"{"env":{"GITHUB_TOKEN":"[redacted]","LANG":"C"}}"#,
            ),
            (r#"API_KEY = "hunter2""#, "API_KEY: [redacted]"),
            ("  api_key: hunter2", "  api_key: [redacted]"),
            ("  - token: 'hunter2'", "  - token: [redacted]"),
            (r#"  "headers": {"#, r#"  "headers": {"#),
            (
                r#"  "url": "http://127.0.0.1:8080/mcp""#,
                r#"  "url": "http://127.0.0.1:8080/mcp""#,
            ),
        ] {
            assert_eq!(shown(line), expected);
        }
        assert_eq!(shown(&"x".repeat(500)).chars().count(), MAX_LINE + 2);
    }

    #[test]
    fn a_diff_shows_the_changed_lines() {
        let diff = unified(
            Path::new("f"),
            "a\r\nb\r\nc\r\nd\r\n",
            "a\r\nb\r\nc\r\nx\r\nd\r\n",
        );
        assert_eq!(diff, "--- f\n+++ f\n@@ -2,3 +2,4 @@\n b\n c\n+x\n d\n");
    }
}
