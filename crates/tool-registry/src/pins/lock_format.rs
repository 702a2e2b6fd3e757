//! Text of a lock file.

use std::{fmt::Write as _, sync::Arc};

use raw_json::{JsonKind, JsonLimits, RawJson, canonical, hex};
use tool_core::Feature;
use tool_scan::escape_json;

use super::{InstalledKind, LockFile, Pin, PinKey, lock_file::LockedSource};

/// Version of the format.
const VERSION: &str = "1";
/// Depth of a definition in the file.
const DEPTH: usize = 5;
/// Maximum length of a list that is written on one line.
const MAX_LINE: usize = 80;

/// Members of `installed`, in the order of the file.
const INSTALLED: [(InstalledKind, &str); 2] =
    [(InstalledKind::Server, "servers"), (InstalledKind::Tool, "tools")];

/// Member of a source that holds the pins of a feature.
fn member(feature: Feature) -> Option<&'static str> {
    match feature {
        Feature::Tool => Some("tools"),
        Feature::Prompt => Some("prompts"),
        Feature::Resource => Some("resources"),
        Feature::ResourceTemplate => Some("resourceTemplates"),
        _ => None,
    }
}

pub(super) fn parse(text: &str) -> Result<LockFile, String> {
    let limits = JsonLimits::STRICT.with_depth(JsonLimits::STRICT.depth + DEPTH);
    let file = RawJson::parse_within(text.to_owned(), limits).map_err(|error| {
        let line = text
            .bytes()
            .take(error.offset())
            .filter(|byte| *byte == b'\n')
            .count()
            + 1;
        format!("line {line}: {error}")
    })?;
    match file.get("lockVersion") {
        Some(version) if version.as_str() == VERSION => {}
        Some(version) => {
            return Err(format!(
                "its `lockVersion` is {}; this program reads version {VERSION}",
                version.as_str()
            ));
        }
        None => return Err("it has no `lockVersion`: it is not a lock file of toolplane".to_owned()),
    }
    let mut lock = LockFile::default();
    for (key, value) in file.members() {
        match &*key {
            "lockVersion" => {}
            "sources" => {
                for (name, source) in object(&value, "`sources`")?.members() {
                    parse_source(&mut lock, &name.into(), &source)?;
                }
            }
            "installed" => parse_installed(&mut lock, &value)?,
            other => return Err(format!("it has an unknown member `{other}`")),
        }
    }
    Ok(lock)
}

fn parse_installed(lock: &mut LockFile, installed: &RawJson) -> Result<(), String> {
    for (key, versions) in object(installed, "`installed`")?.members() {
        let kind = INSTALLED.iter().find(|(_, member)| *member == &*key);
        let Some((kind, _)) = kind else {
            return Err(format!("`installed` has an unknown member `{key}`"));
        };
        for (version, digest) in object(&versions, &format!("`{key}` of `installed`"))?.members() {
            let digest = digest.string();
            let digits = digest
                .as_deref()
                .and_then(|digest| digest.strip_prefix("sha256:"));
            let digest = digits.and_then(parse_digest).ok_or_else(|| {
                format!("the digest of `{version}` in `installed` is not `sha256:` and 64 hexadecimal digits")
            })?;
            lock.set_installed(*kind, &*version, digest);
        }
    }
    Ok(())
}

fn parse_source(lock: &mut LockFile, name: &Arc<str>, source: &RawJson) -> Result<(), String> {
    // A source without pins stays in the file.
    lock.sources.entry(name.clone()).or_default();
    for (key, value) in object(source, &format!("the source `{name}`"))?.members() {
        let feature = Feature::ALL
            .iter()
            .find(|feature| member(**feature) == Some(&*key));
        match (feature, &*key) {
            (Some(&feature), _) => {
                for (entry, pin) in object(&value, &format!("`{key}` of `{name}`"))?.members() {
                    let pin_key = PinKey::new(name.clone(), feature, &*entry);
                    let pin = parse_pin(pin_key, &pin)
                        .map_err(|reason| format!("{} `{entry}` of `{name}`: {reason}", feature.as_str()))?;
                    lock.insert(pin);
                }
            }
            (None, "server") => lock.set_server(name.clone(), &value),
            (None, other) => return Err(format!("the source `{name}` has an unknown member `{other}`")),
        }
    }
    Ok(())
}

fn parse_pin(key: PinKey, pin: &RawJson) -> Result<Pin, String> {
    let text = |key: &str| pin.get(key).and_then(|value| value.string());
    let digest = text("sha256").ok_or("it has no `sha256`")?;
    let digest = parse_digest(&digest).ok_or("its `sha256` is not 64 hexadecimal digits")?;
    let is_redacted = pin.get("redacted").is_some_and(|value| value.as_str() == "true");
    let read = match pin.get("definition") {
        Some(shown) if is_redacted => Pin::from_digest(key, digest).with_shown_definition(shown),
        Some(definition) => {
            // Without the white space of the file.
            let compact = RawJson::parse(canonical(&definition)).map_err(|error| error.to_string())?;
            if raw_json::digest(&compact) != digest {
                return Err("its definition does not fit its `sha256`; restore it, or accept the present definition with \
                            `toolplane lock --update`"
                    .to_owned());
            }
            Pin::new(key, compact)
        }
        None => Pin::from_digest(key, digest),
    };
    Ok(read.with_version(text("version")))
}

fn parse_digest(text: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (index, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(digest)
}

fn object<'a>(value: &'a RawJson, what: &str) -> Result<&'a RawJson, String> {
    match value.kind() {
        JsonKind::Object => Ok(value),
        _ => Err(format!("{what} is not an object")),
    }
}

pub(super) fn render(lock: &LockFile) -> String {
    let mut out = format!("{{\n  \"lockVersion\": {VERSION},\n  \"sources\": {{");
    let mut separator = "\n";
    for (name, source) in &lock.sources {
        out.push_str(separator);
        separator = ",\n";
        let _ = write!(out, "    {}: {{", quoted(name));
        render_source(&mut out, source);
        out.push_str("\n    }");
    }
    if !lock.sources.is_empty() {
        out.push_str("\n  ");
    }
    out.push('}');
    render_installed(&mut out, lock);
    out.push_str("\n}\n");
    // Hidden characters are visible to reviewers, and the text means the same.
    escape_json(&out).into_owned()
}

fn render_installed(out: &mut String, lock: &LockFile) {
    if lock.installed.is_empty() {
        return;
    }
    out.push_str(",\n  \"installed\": {");
    let mut separator = "\n";
    for (kind, member) in INSTALLED {
        let versions = lock.installed.iter().filter(|((known, _), _)| *known == kind);
        let lines: Vec<String> = versions
            .map(|((_, version), digest)| format!("\n      {}: \"sha256:{}\"", quoted(version), hex(digest)))
            .collect();
        if !lines.is_empty() {
            let _ = write!(out, "{separator}    \"{member}\": {{{}\n    }}", lines.join(","));
            separator = ",\n";
        }
    }
    out.push_str("\n  }");
}

fn render_source(out: &mut String, source: &LockedSource) {
    let mut separator = "\n";
    if let Some(server) = &source.server {
        let _ = write!(out, "{separator}      \"server\": ");
        render_value(out, server, 6);
        separator = ",\n";
    }
    for (feature, member) in Feature::ALL
        .iter()
        .filter_map(|feature| Some((feature, member(*feature)?)))
    {
        let pins = source.pins.iter().filter(|((known, _), _)| known == feature);
        let mut pins = pins.peekable();
        if pins.peek().is_none() {
            continue;
        }
        let _ = write!(out, "{separator}      \"{member}\": {{");
        separator = ",\n";
        let mut next = "\n";
        for ((_, name), pin) in pins {
            let _ = writeln!(out, "{next}        {}: {{", quoted(name));
            next = ",\n";
            render_pin(out, pin);
            out.push_str("\n        }");
        }
        out.push_str("\n      }");
    }
}

fn render_pin(out: &mut String, pin: &Pin) {
    if let Some(version) = pin.version() {
        let _ = writeln!(out, "          \"version\": {},", quoted(version));
    }
    let _ = write!(out, "          \"sha256\": \"{}\"", hex(pin.digest()));
    // In canonical order, so that a server that writes members in another order changes nothing. A definition with duplicate
    // keys has no text that people could review: its digest stands for it.
    let definition = pin.definition();
    let sorted = definition
        .and_then(|definition| RawJson::parse_within(canonical(definition), JsonLimits::STRICT).ok());
    if let Some(definition) = sorted {
        if !pin.is_exact() {
            out.push_str(",\n          \"redacted\": true");
        }
        out.push_str(",\n          \"definition\": ");
        render_value(out, &definition, 10);
    }
}

/// Writes a value with one member on each line. Short lists without objects are on one line. The depth is limited by that of
/// [`RawJson`].
fn render_value(out: &mut String, value: &RawJson, indent: usize) {
    let break_line = |out: &mut String, indent: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', indent));
    };
    match value.kind() {
        JsonKind::Object if value.members().next().is_some() => {
            out.push('{');
            for (index, (key, value)) in value.members().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                break_line(out, indent + 2);
                out.push_str(&quoted(&key));
                out.push_str(": ");
                render_value(out, &value, indent + 2);
            }
            break_line(out, indent);
            out.push('}');
        }
        JsonKind::Array if !is_short(value) => {
            out.push('[');
            for (index, item) in value.items().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                break_line(out, indent + 2);
                render_value(out, &item, indent + 2);
            }
            break_line(out, indent);
            out.push(']');
        }
        JsonKind::Array => {
            let items: Vec<_> = value.items().map(|item| item.as_str().to_owned()).collect();
            let _ = write!(out, "[{}]", items.join(", "));
        }
        _ => out.push_str(value.as_str()),
    }
}

fn is_short(array: &RawJson) -> bool {
    let is_scalar = |item: &RawJson| !matches!(item.kind(), JsonKind::Object | JsonKind::Array);
    array.len() <= MAX_LINE && array.items().all(|item| is_scalar(&item))
}

fn quoted(text: &str) -> String {
    RawJson::from(text).as_str().to_owned()
}
