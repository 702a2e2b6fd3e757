//! Versions that agents made: their tests, what operators accept, and the secrets that they may use.

use std::fmt::Write as _;

use serde_json::{Value, json};
use toolplane::{
    RawJson, TestReport, Toolplane,
    core::{SecretUse, rfc3339},
    registry::{PublishError, Publisher, ToolRecord, VersionHead, VersionRequest, split_version},
};

use super::{author, checking_plane, publisher_of, tool_and_number, tool_and_version};
use crate::{
    command::{Accept, Options, Secrets},
    error::CliError,
    exit::Exit,
    output::{Console, text},
};

/// Calls the examples of a version, or the version once.
pub(super) async fn test(
    options: &Options,
    version: &str,
    arguments: Option<&str>,
    console: Console,
) -> Result<Exit, CliError> {
    let (tool, request) = split(version)?;
    let arguments = arguments.map(|text| RawJson::parse(text.to_owned())).transpose();
    let arguments = arguments.map_err(|error| CliError::usage(format!("`--json` is no JSON: {error}")))?;
    let (plane, store) = checking_plane(options, &[], console).await?;
    let publisher = publisher_of(store, plane.manifests());
    let record = publisher.record(tool).await?;
    let head = select(&record, request.as_ref())?;
    let result = run_test(&plane, tool, &head, arguments).await;
    plane.shutdown().await;
    let report = result?;
    let value: Value = report.to_json().to().unwrap_or_default();
    console.value(&value, || report_text(&report))?;
    Ok(match report.is_passed() {
        true => Exit::Done,
        false => Exit::Failed,
    })
}

async fn run_test(
    plane: &Toolplane,
    tool: &str,
    head: &VersionHead,
    arguments: Option<RawJson>,
) -> Result<TestReport, CliError> {
    let authoring = plane.operator_authoring();
    let authoring = authoring.ok_or_else(|| CliError::failed("there is no store"))?;
    let caller = plane.local_caller();
    let report = authoring
        .test(&caller, tool, Some(&head.version), arguments)
        .await;
    report.map_err(|error| CliError::from(toolplane::core::ToolError::from(error)))
}

fn report_text(report: &TestReport) -> String {
    let mut shown = String::new();
    for call in &report.calls {
        let mark = if call.problem.is_none() {
            "ok    "
        } else {
            "FAILED"
        };
        let _ = writeln!(shown, "{mark} {}", text::line(call.arguments.as_str()));
        match &call.problem {
            Some(problem) => {
                let _ = writeln!(shown, "       {}", text::line(problem));
            }
            None if report.is_single => {
                let _ = writeln!(shown, "{}", text::lines(&call.got));
            }
            None => {}
        }
    }
    if !report.is_single {
        shown.push_str(&text::line(&report.summary()));
    }
    shown.trim_end().to_owned()
}

pub(super) async fn delete(publisher: &Publisher, version: &str, console: Console) -> Result<Exit, CliError> {
    let (tool, number) = tool_and_number(version)?;
    publisher.remove_draft(tool, &number).await?;
    console.value(&json!({"deleted": version}), || {
        format!("deleted the draft {}", text::line(version))
    })?;
    Ok(Exit::Done)
}

pub(super) async fn accept(
    publisher: &Publisher,
    version: &str,
    accept: &Accept,
    console: Console,
) -> Result<Exit, CliError> {
    let (tool, request) = tool_and_version(version)?;
    let head = select(&publisher.record(tool).await?, Some(&request))?;
    check_digest(tool, &head, accept.digest.as_deref())?;
    let by = accept.by.as_deref();
    let head = publisher.accept(tool, &head, &author(by)).await?;
    let value = json!({"tool": tool, "version": head.version.to_string(), "accepted_by": author(by)});
    console.value(&value, || {
        format!("accepted what {tool}@{} declares about itself", head.version)
    })?;
    Ok(Exit::Done)
}

/// Checks that a version has the content that an operator has read, by the beginning of its digest.
fn check_digest(tool: &str, head: &VersionHead, read: Option<&str>) -> Result<(), CliError> {
    let Some(read) = read else { return Ok(()) };
    let digits = read.strip_prefix("sha256:").unwrap_or(read).to_ascii_lowercase();
    let digest = toolplane::raw_json::hex(&head.digest);
    if digits.is_empty() || digits.bytes().any(|digit| !digit.is_ascii_hexdigit()) {
        let message = format!("`{}` is no digest", text::line(read));
        return Err(CliError::usage(message).with_hint("`toolplane tools versions` shows the digests"));
    }
    if digest.starts_with(&digits) {
        return Ok(());
    }
    let message = format!("`{tool}@{}` has the digest `{digest}`", head.version);
    Err(CliError::new(Exit::ToolChanged, "tool_changed", message)
        .with_hint("it was changed since it was read: read it again"))
}

pub(super) async fn secrets(options: &Options, verb: Secrets, console: Console) -> Result<Exit, CliError> {
    let (plane, store) = checking_plane(options, &[], console).await?;
    let publisher = publisher_of(store, plane.manifests());
    match verb {
        Secrets::Grant {
            version,
            secrets,
            all: _,
            digest,
            by,
        } => {
            let record = publisher.record(split(&version)?.0).await?;
            let head = select(&record, split(&version)?.1.as_ref())?;
            check_digest(&record.name, &head, digest.as_deref())?;
            let version = (&*record.name, &head);
            grant((&plane, &publisher), version, &secrets, by.as_deref(), console).await
        }
        Secrets::Grants { tool } => grants((&plane, &publisher), tool.as_deref(), console).await,
        Secrets::Revoke { version, secret } => revoke(&publisher, &version, secret.as_deref(), console).await,
    }
}

/// Toolplane with the executors, and publisher of the store.
type Parts<'a> = (&'a Toolplane, &'a Publisher);

async fn grant(
    parts: Parts<'_>,
    version: (&str, &VersionHead),
    secrets: &[String],
    by: Option<&str>,
    console: Console,
) -> Result<Exit, CliError> {
    let ((plane, publisher), (tool, head)) = (parts, version);
    let needed = needed(plane, publisher, tool, head).await?;
    let chosen: Vec<SecretUse> = match secrets {
        [] => needed.clone(),
        names => {
            let names: Vec<String> = names.iter().map(|name| reference(name)).collect();
            if let Some(unknown) = names
                .iter()
                .find(|name| needed.iter().all(|use_| use_.secret != **name))
            {
                let message = format!(
                    "`{tool}@{}` does not refer to `{}`",
                    head.version,
                    text::line(unknown)
                );
                let known: Vec<_> = needed.iter().map(|needed| needed.secret.as_str()).collect();
                let hint = match known.as_slice() {
                    [] => "it refers to no secret".to_owned(),
                    known => format!("it refers to {}", known.join(", ")),
                };
                return Err(CliError::new(Exit::NotFound, "not_found", message).with_hint(hint));
            }
            let is_chosen = |needed: &&SecretUse| names.contains(&needed.secret);
            needed.iter().filter(is_chosen).cloned().collect()
        }
    };
    if chosen.is_empty() {
        let message = format!("`{tool}@{}` refers to no secret", head.version);
        return Err(CliError::new(Exit::NotFound, "not_found", message));
    }
    publisher.grant(tool, head, &chosen, &author(by)).await?;
    let values: Vec<Value> = chosen
        .iter()
        .map(|needed| use_value(tool, head, needed))
        .collect();
    console.value(&values, || {
        let lines = chosen.iter().map(|needed| {
            let SecretUse {
                secret,
                field,
                destination,
                ..
            } = needed;
            format!(
                "granted {} to {tool}@{} in {} for {}",
                text::line(secret),
                head.version,
                text::line(field),
                text::line(destination)
            )
        });
        lines.collect::<Vec<_>>().join("\n")
    })?;
    Ok(Exit::Done)
}

fn use_value(tool: &str, head: &VersionHead, needed: &SecretUse) -> Value {
    json!({
        "tool": tool,
        "version": head.version.to_string(),
        "secret": needed.secret,
        "field": needed.field,
        "destination": needed.destination,
        "digest": format!("sha256:{}", toolplane::raw_json::hex(&head.digest)),
    })
}

/// Returns the reference that a name stands for.
fn reference(name: &str) -> String {
    match name.starts_with("${") {
        true => name.to_owned(),
        false => format!("${{{name}}}"),
    }
}

/// Returns the uses of secrets by a version, if it still has the content that was read.
pub(in crate::verbs) async fn needed(
    plane: &Toolplane,
    publisher: &Publisher,
    tool: &str,
    read: &VersionHead,
) -> Result<Vec<SecretUse>, CliError> {
    let exact = VersionRequest::Exact(read.version.clone());
    let stored = publisher.find(tool, &exact).await?;
    check_digest(tool, &stored.head, Some(&toolplane::raw_json::hex(&read.digest)))?;
    let descriptor = publisher.describe(tool, &stored)?;
    let reach = plane.reach(&descriptor);
    let reach = reach.ok_or_else(|| {
        let kind = text::line(&descriptor.executor.kind).into_owned();
        CliError::failed(format!(
            "there is no executor `{kind}` here, which knows the secrets of `{tool}`"
        ))
    })?;
    Ok(reach.secrets)
}

/// Splits `tool` or `tool@version`.
fn split(text: &str) -> Result<(&str, Option<VersionRequest>), CliError> {
    split_version(text).map_err(|error| CliError::usage(error.to_string()))
}

/// Selects a version: the given one, the newest draft, or the latest version.
fn select(record: &ToolRecord, request: Option<&VersionRequest>) -> Result<VersionHead, CliError> {
    let head = match request {
        Some(request) => request.select(record),
        None => record
            .newest_draft()
            .or_else(|| VersionRequest::Latest.select(record)),
    };
    head.cloned().ok_or_else(|| {
        let known: Vec<_> = record
            .versions
            .iter()
            .map(|head| head.version.to_string())
            .collect();
        PublishError::UnknownVersion {
            tool: record.name.to_string(),
            version: request.map(ToString::to_string).unwrap_or_default(),
            known: known.join(", "),
        }
        .into()
    })
}

async fn grants(parts: Parts<'_>, tool: Option<&str>, console: Console) -> Result<Exit, CliError> {
    let (plane, publisher) = parts;
    let records = match tool {
        Some(tool) => vec![publisher.record(tool).await?],
        None => publisher.store().tools().await.map_err(PublishError::from)?,
    };
    let mut rows = Vec::new();
    for record in &records {
        for head in record.versions.iter().filter(|head| head.agent.is_some()) {
            let granted = head.agent.iter().flat_map(|agent| &agent.grants);
            let is_valid = |grant: &&toolplane::registry::SecretGrant| grant.digest == head.digest;
            let granted: Vec<_> = granted.filter(is_valid).collect();
            let needed = needed(plane, publisher, &record.name, head)
                .await
                .unwrap_or_default();
            for needed in &needed {
                let grant = granted.iter().find(|grant| grant.covers(needed, &head.digest));
                let mut value = use_value(&record.name, head, needed);
                value["granted_by"] = json!(grant.map(|grant| &*grant.by));
                value["granted_at"] = json!(grant.map(|grant| rfc3339(grant.at)));
                rows.push(value);
            }
        }
    }
    console.value(&rows, || {
        if rows.is_empty() {
            return "no tool of an agent refers to a secret".to_owned();
        }
        let line = |row: &Value| {
            let cell = |key: &str| text::line(row[key].as_str().unwrap_or_default()).into_owned();
            let state = match row["granted_by"].as_str() {
                Some(_) => format!("granted by {} at {}", cell("granted_by"), cell("granted_at")),
                None => "NOT granted".to_owned(),
            };
            let tool = format!("{}@{}", cell("tool"), cell("version"));
            let digest = row["digest"].as_str().and_then(|digest| digest.get(7..19));
            let digest = digest.unwrap_or_default();
            format!(
                "{tool}  {digest}  {}  {}  {}  {state}",
                cell("secret"),
                cell("field"),
                cell("destination")
            )
        };
        rows.iter().map(line).collect::<Vec<_>>().join("\n")
    })?;
    Ok(Exit::Done)
}

async fn revoke(
    publisher: &Publisher,
    version: &str,
    secret: Option<&str>,
    console: Console,
) -> Result<Exit, CliError> {
    let (tool, request) = split(version)?;
    let record = publisher.record(tool).await?;
    let head = select(&record, request.as_ref())?;
    let secret = secret.map(reference);
    let exact = VersionRequest::Exact(head.version.clone());
    let n_revoked = publisher.revoke(tool, &exact, secret.as_deref()).await?;
    if n_revoked == 0 {
        let message = format!("`{tool}@{}` has no such grant", head.version);
        return Err(CliError::new(Exit::NotFound, "not_found", message)
            .with_hint("`toolplane secrets grants` lists them"));
    }
    let value = json!({"tool": tool, "version": head.version.to_string(), "revoked": n_revoked});
    console.value(&value, || {
        format!(
            "revoked {} of {tool}@{}",
            text::count(n_revoked, "grant"),
            head.version
        )
    })?;
    Ok(Exit::Done)
}
