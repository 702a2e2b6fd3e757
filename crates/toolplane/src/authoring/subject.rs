//! Draft as a person sees it who decides about its publication.

use std::fmt::Write;

use tool_core::{ApprovalSubject, Descriptor, SecretUse};
use tool_registry::{StoredVersion, ToolRecord, definition_changes};
use tool_scan::escape_line;

use super::{Authoring, AuthoringError};

/// Maximum length of a shown file or manifest, in bytes. The rest is named by its size.
const MAX_SHOWN: usize = 32 << 10;
/// Maximum length of the whole text, in bytes. Files beyond it are named.
const MAX_TEXT: usize = 256 << 10;

/// Describes a draft: its author, its reach, what it declares, its changes against the latest version, its manifest and its
/// files.
pub(super) async fn of_draft(
    authoring: &Authoring,
    record: &ToolRecord,
    stored: &StoredVersion,
) -> Result<ApprovalSubject, AuthoringError> {
    let (tool, head) = (&*record.name, &stored.head);
    let descriptor = authoring.publisher.describe(tool, stored)?;
    let mut text = format!(
        "Publishes {tool}@{} for everyone who may call it.\nMade by {}. SHA-256 {}.",
        head.version,
        escape_line(&head.created_by),
        raw_json::hex(&head.digest)
    );
    write_reach(&mut text, authoring, &descriptor);
    write_declarations(&mut text, &descriptor);
    let n_calls = descriptor.metadata.example_calls.len();
    let tested = head.agent.as_ref().and_then(|agent| agent.tested_at);
    let examples = match (n_calls, tested) {
        (0, _) => "None is a call: nothing tests it.".to_owned(),
        (n, Some(at)) => format!("{n}, all succeeded on {}.", tool_core::rfc3339(at)),
        (n, None) => format!("{n}, which run before it is published."),
    };
    line(&mut text, "Examples", &examples);
    let latest = record.latest.as_ref();
    if let Some(latest) = latest {
        let before = authoring.stored(tool, latest).await?;
        let changes = definition_changes(&before.manifest, &stored.manifest);
        let _ = write!(text, "\n\nChanges against {latest}:");
        for change in &changes {
            let _ = write!(text, "\n  {change}");
        }
        for (path, file) in &stored.files {
            match before.files.get(path) {
                Some(known) if known == file => {}
                Some(_) => line(&mut text, "  changed file", path),
                None => line(&mut text, "  new file", path),
            }
        }
        for path in before
            .files
            .keys()
            .filter(|path| !stored.files.contains_key(*path))
        {
            line(&mut text, "  removed file", path);
        }
    }
    let _ = write!(text, "\n\nManifest:");
    block(&mut text, &tool_policy::readable_json(&stored.manifest));
    for (path, file) in &stored.files {
        let _ = write!(
            text,
            "\n\nFile {} ({} bytes):",
            escape_line(path),
            file.content.len()
        );
        match std::str::from_utf8(&file.content) {
            Ok(content) if text.len() < MAX_TEXT => block(&mut text, content),
            _ => text.push_str("\n  not shown; the SHA-256 above covers it"),
        }
    }
    Ok(ApprovalSubject::new(text, head.digest))
}

fn write_reach(text: &mut String, authoring: &Authoring, descriptor: &Descriptor) {
    line(text, "Kind", &descriptor.executor.kind);
    let Some(reach) = authoring.plane.0.registry.reach(descriptor) else {
        text.push_str(" (there is no such executor here)");
        return;
    };
    let hosts: Vec<_> = reach.hosts.iter().map(String::as_str).collect();
    let hosts = match (reach.is_any_host, hosts.is_empty()) {
        (true, _) => "any host".to_owned(),
        (false, true) => "no host".to_owned(),
        (false, false) => hosts.join(", "),
    };
    line(text, "May reach", &hosts);
    for other in &reach.others {
        line(text, "Uses", other);
    }
    for needed in &reach.secrets {
        let state = match descriptor.origin.granted.contains(needed) {
            true => "granted",
            false => "NOT granted",
        };
        let SecretUse {
            secret,
            field,
            destination,
            ..
        } = needed;
        line(
            text,
            "Secret",
            &format!("{secret} in {field} for {destination}: {state}"),
        );
    }
    let required = &descriptor.metadata.required_permissions;
    if !required.is_empty() {
        line(text, "Callers need", &required.join(", "));
    }
}

/// Names what the manifest declares about itself, which does not count before an operator accepts it.
fn write_declarations(text: &mut String, descriptor: &Descriptor) {
    let metadata = &descriptor.metadata;
    let mut declared = Vec::new();
    for (name, is_declared) in [
        ("idempotent", metadata.idempotent == Some(true)),
        ("read_only", metadata.read_only == Some(true)),
        ("retryable", metadata.retryable == Some(true)),
        ("fallbacks", !metadata.fallbacks.is_empty()),
        (
            "settings of layers",
            descriptor.overrides != tool_core::Overrides::default(),
        ),
        ("stream", descriptor.executor.config.get("stream").is_some()),
    ] {
        if is_declared {
            declared.push(name);
        }
    }
    if !declared.is_empty() {
        let declared = declared.join(", ");
        line(
            text,
            "Declares",
            &format!("{declared}; this counts after `toolplane tools accept` alone"),
        );
    }
}

fn line(text: &mut String, name: &str, value: &str) {
    let _ = write!(text, "\n{name}: {}", escape_line(value));
}

/// Writes lines, indented and without characters that could deceive a reader.
fn block(text: &mut String, content: &str) {
    let shown = match content.char_indices().find(|(at, _)| *at >= MAX_SHOWN) {
        Some((end, _)) => &content[..end],
        None => content,
    };
    for shown in shown.lines() {
        let _ = write!(text, "\n  {}", escape_line(shown));
    }
    if shown.len() < content.len() {
        let _ = write!(text, "\n  (and {} bytes more)", content.len() - shown.len());
    }
}
