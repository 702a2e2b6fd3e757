//! Unknown keys of a map: mistakes in our own files, and keys of other programs in theirs.

use tool_settings::{NodeId, suggest as names};

use crate::{
    Diagnostic,
    document::{place::Cx, suggest},
};

/// Words that switch approvals off in the files of MCP clients.
pub(crate) const APPROVALS: [&str; 4] = ["autoApprove", "alwaysAllow", "autoApproved", "trust"];

/// Key by which VS Code asks its user for values. Only a reference to it matters, which is an error of its own.
const INPUTS: &str = "inputs";

/// Reports the unknown keys of a map. Returns those that are read as the key that was meant, so that all of their
/// problems are reported in the same run, and the intended key is not reported as missing.
pub(crate) fn report(cx: Cx<'_>, map: NodeId, known: &[&'static str]) -> Vec<(&'static str, NodeId)> {
    if cx.lenient {
        ignore(cx, map, known);
        return Vec::new();
    }
    let mut meant_keys = Vec::new();
    for (key, value) in cx.document.entries(map) {
        if known.contains(&key.as_str()) || cx.report.is_full() {
            continue;
        }
        let location = Some(cx.document.key_location(*value));
        let message = format!("unknown key `{}`", names::shown(key));
        let problem = Diagnostic::error(message).with_hint(suggest::key(cx.sections, key, known));
        cx.report.push(problem.with_location(location));
        if !cx.report.is_full()
            && let Some(meant) = suggest::meant(cx.sections, key, known)
            && cx.document.get(map, meant).is_none()
        {
            meant_keys.push((meant, *value));
        }
    }
    meant_keys
}

/// Warns of the keys of another program's file that are ignored: in one warning, for there may be many.
fn ignore(cx: Cx<'_>, map: NodeId, known: &[&str]) {
    let unknown = || {
        let entries = cx.document.entries(map).iter();
        let entries = entries.map(|(key, value)| (key.as_str(), *value));
        entries.filter(|(key, _)| !known.contains(key) && *key != INPUTS)
    };
    let warn = |message: String, at: NodeId, hint: &str| {
        let problem = Diagnostic::warning(message).with_location(Some(cx.document.key_location(at)));
        cx.report.push(if hint.is_empty() {
            problem
        } else {
            problem.with_hint(hint)
        });
    };
    for (key, at) in unknown().filter(|(key, _)| APPROVALS.contains(key)) {
        warn(
            format!("`{key}` is ignored: it would approve calls without asking"),
            at,
            "what may be called is decided by the policy of this gateway",
        );
    }
    let others: Vec<(&str, NodeId)> = unknown().filter(|(key, _)| !APPROVALS.contains(key)).collect();
    let listed: Vec<&str> = others.iter().map(|(key, _)| *key).collect();
    match others.as_slice() {
        [] => {}
        [(key, at)] => warn(format!("the key `{}` is ignored", names::shown(key)), *at, ""),
        [(_, at), ..] => warn(format!("the keys {} are ignored", names::list(&listed)), *at, ""),
    }
}
