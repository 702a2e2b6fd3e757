use std::fmt::Write;

use raw_json::{JsonKind, RawJson};

use crate::hide_credentials;

/// Replacement of a hidden value.
const HIDDEN: &str = "\"[hidden]\"";
/// Maximum length of the text, without closing brackets.
const MAX_TEXT: usize = 2048;
/// Maximum shown length of a string.
const MAX_STRING: usize = 128;
/// Maximum length of a string that is examined.
const MAX_LOOK: usize = 4096;
/// Maximum shown depth of a value.
const MAX_DEPTH: usize = 8;

/// Parts of names that denote a secret. Names are compared by letters and digits alone, in lower case.
const SECRET_PARTS: [&str; 15] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "token",
    "apikey",
    "authorization",
    "authentication",
    "credential",
    "privatekey",
    "accesskey",
    "cookie",
    "sessionid",
    "signature",
];
/// Whole names that denote a secret.
const SECRET_NAMES: [&str; 9] = ["auth", "pass", "pwd", "pw", "pin", "otp", "jwt", "bearer", "sid"];
/// Beginnings of strings that are secrets, whatever their name.
const SECRET_STARTS: [&str; 14] = [
    "bearer ",
    "basic ",
    "eyj",
    "sk-",
    "sk_live_",
    "ghp_",
    "gho_",
    "github_pat_",
    "glpat-",
    "xox",
    "akia",
    "asia",
    "aiza",
    "-----begin",
];
/// Members that name the value in a sibling member, such as `{"name": "Authorization", "value": "…"}`.
const NAMING: [&str; 4] = ["name", "key", "header", "field"];
/// Number of members of an object in which they are searched.
const MAX_NAMING: usize = 16;

/// Returns a call's arguments for logs: JSON of bounded length, without secrets and without values whose name denotes
/// one.
///
/// Passwords, keys and tokens are hidden at any depth, by the names of members in any spelling, by the beginnings of
/// well-known kinds of credentials, and where a text contains `password=…`. Personal data are not recognized: logs of
/// arguments are for people who may see the arguments.
#[must_use]
pub fn sanitize_arguments(arguments: &RawJson) -> String {
    let mut text = String::new();
    write_value(&mut text, arguments, 0);
    text
}

fn write_value(out: &mut String, value: &RawJson, depth: usize) {
    match value.kind() {
        JsonKind::Object | JsonKind::Array if depth == MAX_DEPTH => out.push_str("\"…\""),
        JsonKind::Object => write_object(out, value, depth),
        JsonKind::Array => {
            out.push('[');
            for (index, item) in value.items().enumerate() {
                if !begin_next(out, index, "\"…\"") {
                    break;
                }
                write_value(out, &item, depth + 1);
            }
            out.push(']');
        }
        JsonKind::String => write_string(out, value, depth),
        // A number may have any number of digits.
        _ if value.len() > MAX_STRING => out.push_str("\"…\""),
        _ => out.push_str(value.as_str()),
    }
}

fn write_object(out: &mut String, object: &RawJson, depth: usize) {
    let is_named = holds_named_secret(object);
    out.push('{');
    for (index, (key, value)) in object.members().enumerate() {
        if !begin_next(out, index, "\"…\":\"…\"") {
            break;
        }
        push_text(out, &hide_credentials(&key));
        out.push(':');
        if is_secret_name(&key) || is_named && !is_naming(&key) {
            out.push_str(HIDDEN);
        } else {
            write_value(out, &value, depth + 1);
        }
    }
    out.push('}');
}

/// Returns `true` if a member of an object names the secret in another one.
pub(super) fn holds_named_secret(object: &RawJson) -> bool {
    let mut members = object.members().take(MAX_NAMING);
    members.any(|(key, value)| is_naming(&key) && names_secret(&value))
}

/// Returns `true` if members of this name tell what another member is.
pub(super) fn is_naming(key: &str) -> bool {
    NAMING.contains(&key)
}

/// Returns `true` if a value is the name of a secret.
fn names_secret(value: &RawJson) -> bool {
    let is_short = value.kind() == JsonKind::String && value.len() <= MAX_STRING;
    is_short && value.string().is_some_and(|name| is_secret_name(&name))
}

fn write_string(out: &mut String, value: &RawJson, depth: usize) {
    if value.len() > MAX_LOOK {
        let _ = write!(out, "\"[{} bytes]\"", value.len());
        return;
    }
    let text = value.string().unwrap_or_default();
    let inner = text.trim_start().starts_with(['{', '[']);
    match RawJson::parse(text.clone()) {
        Ok(inside) if inner && depth < MAX_DEPTH => {
            let mut shown = String::new();
            write_value(&mut shown, &inside, depth + 1);
            push_text(out, &shown);
        }
        _ if is_secret(&text) => out.push_str(HIDDEN),
        _ => push_text(out, &hide_credentials(&text)),
    }
}

/// Writes a comma before all but the first entry. Returns `false` if no more entries are shown, after writing `more`
/// for the rest.
fn begin_next(out: &mut String, index: usize, more: &str) -> bool {
    let is_full = out.len() > MAX_TEXT;
    if index > 0 {
        out.push(',');
    }
    if is_full {
        out.push_str(more);
    }
    !is_full
}

/// Writes a string, cut to its maximum shown length.
fn push_text(out: &mut String, text: &str) {
    match text.char_indices().nth(MAX_STRING) {
        Some((end, _)) => out.push_str(RawJson::from(format!("{}…", &text[..end]).as_str()).as_str()),
        None => out.push_str(RawJson::from(text).as_str()),
    }
}

pub(super) fn is_secret_name(name: &str) -> bool {
    // No real name is that long; its beginning is enough.
    let letters = name
        .chars()
        .take(MAX_STRING)
        .map(narrow)
        .filter(|letter| letter.is_alphanumeric());
    let plain: String = letters.flat_map(char::to_lowercase).collect();
    SECRET_NAMES.contains(&&*plain) || SECRET_PARTS.iter().any(|part| plain.contains(part))
}

/// Returns the usual form of a full-width letter (U+FF01 to U+FF5E), as East Asian keyboards produce them.
fn narrow(letter: char) -> char {
    match u32::from(letter) {
        wide @ 0xff01..=0xff5e => char::from_u32(wide - 0xfee0).unwrap_or(letter),
        _ => letter,
    }
}

/// Returns `true` if a string is or contains a secret.
fn is_secret(text: &str) -> bool {
    let small = text.trim_start().to_lowercase();
    let says_one = || {
        small.match_indices(['=', ':']).any(|(at, _)| {
            let before = small[..at].trim_end().trim_end_matches(['"', '\'']);
            let start = before.rfind(|letter: char| !letter.is_alphanumeric() && !"-_.".contains(letter));
            let name = start.map_or(before, |start| {
                before[start..].trim_start_matches(|letter: char| !letter.is_alphanumeric())
            });
            is_secret_name(name)
        })
    };
    SECRET_STARTS.iter().any(|start| small.starts_with(start)) || has_user(&small) || says_one()
}

/// Returns `true` if a string contains a URL with user information, and possibly a password.
fn has_user(text: &str) -> bool {
    text.split("://").skip(1).any(|rest| {
        let end = rest.find(|letter: char| letter == '/' || letter.is_whitespace());
        rest[..end.unwrap_or(rest.len())].contains('@')
    })
}
