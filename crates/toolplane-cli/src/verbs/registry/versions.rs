//! Versions of a tool in the store.

use semver::Version;
use serde_json::{Value, json};
use toolplane::{
    core::rfc3339,
    registry::{Deprecation, Publisher, StoreError, ToolAlias, ToolRecord, VersionHead, VersionState},
};

use super::{author, tool_and_number, tool_and_version};
use crate::{
    command::{Deprecate, Format},
    error::CliError,
    exit::Exit,
    output::{Console, text},
};

pub(super) async fn list(publisher: &Publisher, tool: &str, console: Console) -> Result<Exit, CliError> {
    let record = publisher.record(tool).await?;
    let rows: Vec<Value> = record
        .versions
        .iter()
        .rev()
        .map(|head| to_json(&record, head))
        .collect();
    console.list(&rows, |table| {
        let header = ["VERSION", "STATE", "CREATED", "BY", "CHANGE", "DIGEST"];
        table
            .header(header)
            .rows(record.versions.iter().rev().map(|head| cells(&record, head)))
    })?;
    if let (None, Format::Table) = (&record.latest, console.format) {
        console.say("no version is the latest one: the tool is not offered");
    }
    Ok(Exit::Done)
}

fn cells(record: &ToolRecord, head: &VersionHead) -> [String; 6] {
    let mark = if record.latest.as_ref() == Some(&head.version) {
        " (latest)"
    } else {
        ""
    };
    [
        format!("{}{mark}", head.version),
        text::line(&state(head)).into_owned(),
        rfc3339(head.created_at),
        text::line(&head.created_by).into_owned(),
        text::line(head.change.as_deref().unwrap_or_default()).into_owned(),
        raw_json::hex(&head.digest).chars().take(12).collect(),
    ]
}

/// Returns the state with its reason.
fn state(head: &VersionHead) -> String {
    match &head.state {
        VersionState::Deprecated(deprecation) => deprecation.sentence(),
        VersionState::Yanked { reason } => format!("yanked: {reason}"),
        state => state.as_str().to_owned(),
    }
}

fn to_json(record: &ToolRecord, head: &VersionHead) -> Value {
    let mut value = json!({
        "version": head.version.to_string(),
        "latest": record.latest.as_ref() == Some(&head.version),
        "state": head.state.as_str(),
        "digest": format!("sha256:{}", raw_json::hex(&head.digest)),
        "created_at": rfc3339(head.created_at),
        "created_by": &*head.created_by,
        "change": head.change,
    });
    match &head.state {
        VersionState::Deprecated(deprecation) => {
            value["replacement"] = json!(deprecation.replacement);
            value["until"] = json!(deprecation.until);
            value["reason"] = json!(deprecation.reason);
        }
        VersionState::Yanked { reason } => value["reason"] = json!(reason),
        _ => {}
    }
    value
}

pub(super) async fn deprecate(
    publisher: &Publisher,
    deprecate: Deprecate,
    console: Console,
) -> Result<Exit, CliError> {
    let (tool, request) = tool_and_version(&deprecate.version)?;
    if let Some(until) = deprecate.until.as_deref().filter(|until| !is_day(until)) {
        return Err(
            CliError::usage(format!("`{}` is no day", text::line(until))).with_hint("write it as 2027-01-31")
        );
    }
    let deprecation = (!deprecate.undo).then(|| {
        Deprecation::default()
            .with_replacement(deprecate.replacement)
            .with_until(deprecate.until)
            .with_reason(deprecate.reason)
    });
    let head = publisher.deprecate(tool, &request, deprecation).await?;
    let value = json!({"tool": tool, "version": head.version.to_string(), "state": head.state.as_str()});
    console.value(&value, || format!("{tool}@{}: {}", head.version, state(&head)))?;
    Ok(Exit::Done)
}

/// Returns `true` for a day of the Gregorian calendar, `YYYY-MM-DD`.
fn is_day(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts[..] else {
        return false;
    };
    let number = |part: &str, length| {
        let is_number = part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| part.parse::<u32>().unwrap_or_default())
    };
    let (Some(year), Some(month), Some(day)) = (number(year, 4), number(month, 2), number(day, 2)) else {
        return false;
    };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let n_days = match month {
        2 => 28 + u32::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=n_days).contains(&day)
}

pub(super) async fn yank(
    publisher: &Publisher,
    version: &str,
    reason: &str,
    by: Option<&str>,
    console: Console,
) -> Result<Exit, CliError> {
    let (tool, version) = tool_and_number(version)?;
    let latest = publisher.yank(tool, &version, reason, &author(by)).await?;
    let shown = latest.as_ref().map(Version::to_string);
    let value = json!({"tool": tool, "version": version.to_string(), "state": "yanked", "latest": shown});
    console.value(&value, || match &latest {
        Some(latest) => format!("yanked {tool}@{version}; the latest version is {latest}"),
        None => format!("yanked {tool}@{version}; no version is left, and {tool} is not offered"),
    })?;
    Ok(Exit::Done)
}

pub(super) async fn rollback(
    publisher: &Publisher,
    tool: &str,
    to: Option<&str>,
    by: Option<&str>,
    console: Console,
) -> Result<Exit, CliError> {
    let to = match to {
        Some(to) => Some(Version::parse(to).map_err(|_| {
            CliError::usage(format!("`{}` is no version", text::line(to)))
                .with_hint("write one such as `1.0.0`")
        })?),
        None => None,
    };
    let latest = publisher.rollback(tool, to.as_ref(), &author(by)).await?;
    let value = json!({"tool": tool, "latest": latest.to_string()});
    console.value(&value, || format!("{tool}@{latest} is the latest version again"))?;
    Ok(Exit::Done)
}

pub(super) async fn alias(
    publisher: &Publisher,
    name: &str,
    target: Option<&str>,
    remove: bool,
    console: Console,
) -> Result<Exit, CliError> {
    let Some(target) = target.filter(|_| !remove) else {
        let removed = publisher.store().set_alias(name, None).await;
        let removed = removed
            .map_err(|error: StoreError| CliError::from(toolplane::registry::PublishError::from(error)))?;
        if !removed {
            let message = format!("there is no alias `{}`", text::line(name));
            return Err(CliError::new(Exit::NotFound, "not_found", message));
        }
        console.value(&json!({"alias": name, "removed": true}), || {
            format!("removed the alias {name}")
        })?;
        return Ok(Exit::Done);
    };
    let (tool, request) = tool_and_version(target)?;
    let alias = ToolAlias::new(name, tool, request.to_string());
    let head = publisher.set_alias(alias).await?;
    let value = json!({"alias": name, "tool": tool, "version": request.to_string(), "selected": head.version.to_string()});
    console.value(&value, || {
        format!("{name} is {tool}@{request}, which is {} now", head.version)
    })?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::is_day;

    #[test]
    fn days_are_those_of_the_calendar() {
        for day in ["2027-01-31", "2028-02-29", "2000-02-29"] {
            assert!(is_day(day), "{day}");
        }
        for no_day in [
            "2027-02-29",
            "2100-02-29",
            "2027-13-01",
            "2027-00-10",
            "2027-1-1",
            "soon",
            "2027-04-31",
            "2027-01-00",
        ] {
            assert!(!is_day(no_day), "{no_day}");
        }
    }
}
