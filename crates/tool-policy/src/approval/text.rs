//! Approvals as text for people and as JSON for programs. Text of a caller cannot affect its display: it holds no terminal
//! sequence, no right-to-left override and no markup.

use std::{fmt::Write, time::Duration};

use raw_json::{RawJson, hex};
use tool_core::{ApprovalRecord, ApprovalState, format_duration, rfc3339};

/// Maximum size of the arguments and details in a question, in bytes. Larger ones are reviewed at the desk, never approved unseen.
const MAX_SHOWN: usize = 4 * 1024;

/// Returns the text of the question about a call, or `None` if its arguments are too large for it.
pub(crate) fn question_text(approval: &ApprovalRecord, left: Duration) -> Option<String> {
    let call = &approval.call;
    let arguments = readable_json(&call.arguments);
    if arguments.len() + call.details.len() > MAX_SHOWN {
        return None;
    }
    let mut text = format!(
        "Approve this call? It needs approval because {}.\n\nTool: {}",
        harmless_text(&call.reason),
        harmless_text(&call.tool)
    );
    if let Some(version) = &call.version {
        let _ = write!(text, " (version {})", harmless_text(version));
    }
    let _ = write!(text, "\nAsked by: {}", harmless_text(&call.principal));
    for risk in &call.risks {
        let _ = write!(text, "\nNote: {}", harmless_text(risk));
    }
    text.push_str("\nArguments:\n\n");
    for line in arguments.lines() {
        // Indented text is code in Markdown, and readable everywhere else.
        let _ = writeln!(text, "    {line}");
    }
    if !call.details.is_empty() {
        text.push_str("\nDetails:\n\n");
        for line in call.details.lines() {
            let _ = writeln!(text, "    {}", harmless_text(line));
        }
    }
    let left = Duration::from_secs(left.as_secs() + u64::from(left.subsec_nanos() > 0));
    let _ = write!(text, "\nIt can be approved for {}.", format_duration(left));
    Some(text)
}

/// Returns an approval as one JSON object: its call, caller, arguments and state.
#[must_use]
pub fn approval_json(approval: &ApprovalRecord) -> RawJson {
    let call = &approval.call;
    let text = |text: &str| RawJson::from(text);
    let mut members = vec![
        ("handle", text(&approval.handle)),
        ("state", text(approval.state.as_str())),
        ("tool", text(&call.tool)),
    ];
    members.extend(call.version.as_deref().map(|version| ("version", text(version))));
    members.extend([
        ("arguments", call.arguments.clone()),
        ("principal", text(&call.principal)),
        ("tenant", text(&call.tenant)),
        ("reason", text(&call.reason)),
        ("risks", RawJson::from(serde_json::json!(call.risks))),
        ("details", text(&call.details)),
        ("by_another", RawJson::from(call.by_another)),
        ("asked_at", text(&rfc3339(call.asked_at))),
        ("expires_at", text(&rfc3339(call.expires_at))),
        ("tool_digest", text(&hex(&call.tool_digest))),
        ("arguments_digest", text(&hex(&call.arguments_digest))),
    ]);
    match &approval.state {
        ApprovalState::Approved { by } => members.push(("decided_by", text(by))),
        ApprovalState::Denied { by, reason } => {
            members.push(("decided_by", text(by)));
            members.extend(reason.as_deref().map(|reason| ("denial", text(reason))));
        }
        _ => {}
    }
    RawJson::from_members(&members)
}

/// Formats JSON with one line per member and item. Characters that could deceive a reader are written as escapes, which keeps
/// the meaning.
///
/// # Examples
/// ```
/// use raw_json::RawJson;
/// use tool_policy::readable_json;
///
/// let json = RawJson::parse(r#"{"to":"<b>ann</b>"}"#).unwrap();
/// assert_eq!(readable_json(&json), "{\n  \"to\": \"\\u003cb\\u003eann\\u003c/b\\u003e\"\n}");
/// ```
#[must_use]
pub fn readable_json(json: &RawJson) -> String {
    let mut text = String::with_capacity(json.len() * 2);
    let mut depth = 0_usize;
    let mut characters = json.as_str().chars().peekable();
    let break_line = |text: &mut String, depth: usize| {
        text.push('\n');
        text.extend(std::iter::repeat_n("  ", depth));
    };
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                text.push('"');
                while let Some(character) = characters.next() {
                    let next = characters.peek().copied();
                    push_visible(&mut text, character, next);
                    match character {
                        '"' => break,
                        // An escaped character ends no string.
                        '\\' => text.extend(characters.next()),
                        _ => {}
                    }
                }
            }
            '{' | '[' => {
                text.push(character);
                while characters.next_if(char::is_ascii_whitespace).is_some() {}
                if let Some(end) = characters.next_if(|next| matches!(next, '}' | ']')) {
                    text.push(end);
                } else {
                    depth += 1;
                    break_line(&mut text, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                break_line(&mut text, depth);
                text.push(character);
            }
            ',' => {
                text.push(',');
                break_line(&mut text, depth);
            }
            ':' => text.push_str(": "),
            space if space.is_ascii_whitespace() => {}
            other => text.push(other),
        }
    }
    text
}

/// Appends a character of a JSON text, as an escape if it could deceive a reader.
fn push_visible(text: &mut String, character: char, next: Option<char>) {
    let is_link = character == ']' && next == Some('(');
    if is_link || matches!(character, '<' | '>' | '`') || is_deceptive(character) {
        let mut units = [0; 2];
        for unit in character.encode_utf16(&mut units) {
            let _ = write!(text, "\\u{unit:04x}");
        }
    } else {
        text.push(character);
    }
}

/// Returns a text as one line without deceptive characters: see [`readable_json`].
#[must_use]
pub fn harmless_text(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        // Backticks come from our own messages, around names.
        if character == '`' {
            safe.push('`');
        } else {
            push_visible(&mut safe, character, characters.peek().copied());
        }
    }
    safe
}

/// Returns `true` if a character of a line shows nothing, or changes how others are shown.
fn is_deceptive(character: char) -> bool {
    matches!(character, '\n' | '\t') || tool_scan::is_hidden(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_caller_cannot_deceive_a_reader() {
        let cases = [
            (r#"{"a":1e2,"b":[]}"#, "{\n  \"a\": 1e2,\n  \"b\": []\n}"),
            (r#"{ }"#, "{}"),
            (
                r#"["x", {"y":null}]"#,
                "[\n  \"x\",\n  {\n    \"y\": null\n  }\n]",
            ),
            (
                r#"{"a":"say \"yes\", {x}: [y]\\"}"#,
                "{\n  \"a\": \"say \\\"yes\\\", {x}: [y]\\\\\"\n}",
            ),
            // A right-to-left override, a zero-width space, a terminal sequence, a delete character, a tag.
            ("[\"a\u{202e}b\"]", "[\n  \"a\\u202eb\"\n]"),
            ("[\"a\u{200b}b\"]", "[\n  \"a\\u200bb\"\n]"),
            ("[\"a\u{9b}31mb\"]", "[\n  \"a\\u009b31mb\"\n]"),
            ("[\"a\u{7f}\"]", "[\n  \"a\\u007f\"\n]"),
            ("[\"\u{e0041}\"]", "[\n  \"\\udb40\\udc41\"\n]"),
            // Markup.
            (
                r#"["![x](https://e.example/p.png)"]"#,
                "[\n  \"![x\\u005d(https://e.example/p.png)\"\n]",
            ),
            (r#"["<img src=x>"]"#, "[\n  \"\\u003cimg src=x\\u003e\"\n]"),
            (r#"["``` [x]"]"#, "[\n  \"\\u0060\\u0060\\u0060 [x]\"\n]"),
            // Ordinary text of people.
            ("[\"Grüße, 你好 🎉\"]", "[\n  \"Grüße, 你好 🎉\"\n]"),
        ];
        for (json, expected) in cases {
            let json = RawJson::parse(json.to_owned()).unwrap();
            let shown = readable_json(&json);
            assert_eq!(shown, expected);
            let again = RawJson::parse(shown).unwrap();
            assert_eq!(
                raw_json::canonical(&again),
                raw_json::canonical(&json),
                "it means the same"
            );
        }
    }

    #[test]
    fn text_stays_on_one_line() {
        assert_eq!(harmless_text("ann\nTool: other"), "ann\\u000aTool: other");
        assert_eq!(harmless_text("the rule `a*`"), "the rule `a*`");
        assert_eq!(harmless_text("a\u{2028}b\u{1b}[2J"), "a\\u2028b\\u001b[2J");
    }
}
