//! Documents of the directory, and their records.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use raw_json::{RawJson, hex};
use semver::Version;
use serde::{Deserialize, Serialize, ser::Error as _};
use serde_json::value::RawValue;
use tool_core::{SecretUse, rfc3339};
use tool_registry::{
    Acceptance, AgentVersion, Deprecation, LatestChange, SecretGrant, ServerRecord, ToolAlias, ToolRecord,
    VersionHead, VersionState,
};

/// Bytes that names of files do not have.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'+');

/// Tool with what its document says about the content of its versions.
#[derive(Debug, Clone)]
pub(crate) struct Tool {
    /// Record; its revision is not part of the document.
    pub(crate) record: ToolRecord,
    pub(crate) contents: BTreeMap<Version, Content>,
}

/// Content of a version, as far as its tool's document knows it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Content {
    /// SHA-256 of each file.
    pub(crate) files: BTreeMap<String, [u8; 32]>,
    /// `true` if the manifest is stored as its author wrote it, with spaces of its own, and not indented by the store.
    pub(crate) is_as_written: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolDocument {
    name: String,
    owner: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latest: Option<Version>,
    versions: BTreeMap<Version, VersionDocument>,
    #[serde(default)]
    history: Vec<LatestDocument>,
}

#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct VersionDocument {
    state: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replacement: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    digest: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    files: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    as_written: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    change: Option<String>,
    created_at: String,
    created_by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<AgentDocument>,
}

/// Record of a version that an agent made.
#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct AgentDocument {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    accepted: Option<AcceptanceDocument>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tested_at: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    grants: Vec<GrantDocument>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AcceptanceDocument {
    by: String,
    at: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GrantDocument {
    secret: String,
    field: String,
    destination: String,
    digest: String,
    by: String,
    at: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LatestDocument {
    version: Option<Version>,
    at: String,
    by: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AliasDocument {
    tool: String,
    version: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerDocument {
    name: String,
    is_official: bool,
    created_at: String,
    updated_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proposed_by: Option<String>,
    settings: Box<RawValue>,
}

/// Document that can be read and written.
pub(crate) trait Document: Sized {
    /// Reads the document of this name.
    fn parse(name: &str, text: &[u8]) -> Result<Self, String>;

    /// Writes the document.
    fn to_text(&self) -> Result<String, serde_json::Error>;
}

impl Document for Tool {
    fn parse(name: &str, text: &[u8]) -> Result<Self, String> {
        let document: ToolDocument = read(text)?;
        if document.name != name {
            return Err(format!(
                "it describes `{}`, and its folder is that of `{name}`",
                document.name
            ));
        }
        let mut record = ToolRecord::new(name.into(), document.owner.into(), 0);
        let mut contents = BTreeMap::new();
        for (number, version) in document.versions {
            let (head, content) = version.read(&number)?;
            record.versions.push(head);
            contents.insert(number, content);
        }
        if let Some(latest) = &document.latest {
            match record.version(latest) {
                Some(head) if head.state != VersionState::Draft => {}
                _ => {
                    return Err(format!(
                        "the latest version is `{latest}`, which is not published"
                    ));
                }
            }
        }
        record.latest = document.latest;
        let history = document.history.into_iter();
        let changes = history.map(|change| {
            Ok::<_, String>(LatestChange::new(
                change.version,
                time(&change.at)?,
                change.by.into(),
            ))
        });
        record.history = changes.collect::<Result<_, _>>()?;
        Ok(Self { record, contents })
    }

    fn to_text(&self) -> Result<String, serde_json::Error> {
        let record = &self.record;
        let versions = record.versions.iter().map(|head| {
            let content = self.contents.get(&head.version);
            (head.version.clone(), VersionDocument::new(head, content))
        });
        let history = record.history.iter().map(|change| LatestDocument {
            version: change.version.clone(),
            at: time_text(change.at),
            by: change.by.to_string(),
        });
        write(&ToolDocument {
            name: record.name.to_string(),
            owner: record.owner.to_string(),
            latest: record.latest.clone(),
            versions: versions.collect(),
            history: history.collect(),
        })
    }
}

impl VersionDocument {
    fn new(head: &VersionHead, content: Option<&Content>) -> Self {
        let mut document = Self {
            state: head.state.as_str().to_owned(),
            digest: digest_text(&head.digest),
            change: head.change.clone(),
            created_at: time_text(head.created_at),
            created_by: head.created_by.to_string(),
            agent: head.agent.as_ref().map(AgentDocument::new),
            ..Self::default()
        };
        match &head.state {
            VersionState::Deprecated(deprecation) => {
                document.replacement.clone_from(&deprecation.replacement);
                document.until.clone_from(&deprecation.until);
                document.reason.clone_from(&deprecation.reason);
            }
            VersionState::Yanked { reason } => document.reason = Some(reason.clone()),
            _ => {}
        }
        if let Some(content) = content {
            document.as_written = content.is_as_written;
            let files = content.files.iter();
            document.files = files
                .map(|(path, digest)| (path.clone(), digest_text(digest)))
                .collect();
        }
        document
    }

    fn read(self, number: &Version) -> Result<(VersionHead, Content), String> {
        let state = match self.state.as_str() {
            "draft" => VersionState::Draft,
            "published" => VersionState::Published,
            "deprecated" => VersionState::Deprecated(
                Deprecation::default()
                    .with_replacement(self.replacement)
                    .with_until(self.until)
                    .with_reason(self.reason),
            ),
            "yanked" => VersionState::Yanked {
                reason: self.reason.unwrap_or_default(),
            },
            other => {
                return Err(format!(
                    "`{}` is no state: write `draft`, `published`, `deprecated` or `yanked`",
                    other.escape_debug()
                ));
            }
        };
        let (digest, at) = (digest(&self.digest)?, time(&self.created_at)?);
        let agent = self.agent.map(AgentDocument::read).transpose()?;
        let head = VersionHead::new(number.clone(), digest, state, at, self.created_by.into());
        let head = head.with_agent(agent);
        let mut content = Content {
            is_as_written: self.as_written,
            ..Content::default()
        };
        for (path, text) in self.files {
            check_path(&path)?;
            let sum = self::digest(&text)?;
            content.files.insert(path, sum);
        }
        Ok((head.with_change(self.change), content))
    }
}

impl AgentDocument {
    fn new(agent: &AgentVersion) -> Self {
        let accepted = agent.accepted.as_ref();
        let grants = agent.grants.iter().map(|grant| GrantDocument {
            secret: grant.secret.clone(),
            field: grant.field.clone(),
            destination: grant.destination.clone(),
            digest: digest_text(&grant.digest),
            by: grant.by.to_string(),
            at: time_text(grant.at),
        });
        Self {
            accepted: accepted.map(|accepted| AcceptanceDocument {
                by: accepted.by.to_string(),
                at: time_text(accepted.at),
            }),
            tested_at: agent.tested_at.map(time_text),
            grants: grants.collect(),
        }
    }

    fn read(self) -> Result<AgentVersion, String> {
        let mut agent = AgentVersion::default();
        if let Some(accepted) = self.accepted {
            agent.accepted = Some(Acceptance::new(accepted.by, time(&accepted.at)?));
        }
        agent.tested_at = self.tested_at.as_deref().map(time).transpose()?;
        for grant in self.grants {
            let needed = SecretUse::new(grant.secret, grant.field, grant.destination);
            let (digest, at) = (digest(&grant.digest)?, time(&grant.at)?);
            agent.grants.push(SecretGrant::new(needed, digest, grant.by, at));
        }
        Ok(agent)
    }
}

impl Document for BTreeMap<String, ToolAlias> {
    fn parse(_: &str, text: &[u8]) -> Result<Self, String> {
        let document: BTreeMap<String, AliasDocument> = read(text)?;
        let aliases = document.into_iter().map(|(name, target)| {
            let alias = ToolAlias::new(name.as_str(), target.tool, target.version);
            (name, alias)
        });
        Ok(aliases.collect())
    }

    fn to_text(&self) -> Result<String, serde_json::Error> {
        let target = |alias: &ToolAlias| AliasDocument {
            tool: alias.tool.to_string(),
            version: alias.version.clone(),
        };
        let document = self.iter().map(|(name, alias)| (name, target(alias)));
        write(&document.collect::<BTreeMap<_, _>>())
    }
}

impl Document for ServerRecord {
    fn parse(name: &str, text: &[u8]) -> Result<Self, String> {
        let document: ServerDocument = read(text)?;
        if document.name != name {
            return Err(format!(
                "it describes `{}`, and its file is that of `{name}`",
                document.name
            ));
        }
        let settings = document.settings.get().to_owned();
        let settings = RawJson::parse(settings)
            .map_err(|error| error.to_string())?
            .compact();
        let mut server =
            Self::new(name, settings, time(&document.created_at)?).with_official(document.is_official);
        server.updated_at = time(&document.updated_at)?;
        Ok(server.with_proposed_by(document.proposed_by.map(Into::into)))
    }

    fn to_text(&self) -> Result<String, serde_json::Error> {
        write(&ServerDocument {
            name: self.name.to_string(),
            is_official: self.is_official,
            created_at: time_text(self.created_at),
            updated_at: time_text(self.updated_at),
            proposed_by: self.proposed_by.as_deref().map(str::to_owned),
            settings: RawValue::from_string(self.settings.compact().as_str().to_owned())?,
        })
    }
}

pub(crate) fn read<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(text).map_err(|error| error.to_string())
}

/// Writes a document with one member on each line.
pub(crate) fn write<T: Serialize>(document: &T) -> Result<String, serde_json::Error> {
    let text = RawJson::parse(serde_json::to_string(document)?).map_err(serde_json::Error::custom)?;
    Ok(text.indented() + "\n")
}

/// Returns the name of the file or folder of a tool or server.
pub(crate) fn file_name(name: &str) -> String {
    let encoded = utf8_percent_encode(name, ENCODED).to_string();
    match encoded.strip_prefix('.') {
        // Such names hide files, or lead elsewhere.
        Some(rest) => format!("%2E{rest}"),
        None => encoded,
    }
}

/// Returns the name whose file or folder has this name; `None` if nothing of the store has it.
pub(crate) fn name_of(file: &str) -> Option<String> {
    let name = percent_decode_str(file).decode_utf8().ok()?.into_owned();
    (!name.is_empty() && file_name(&name) == file).then_some(name)
}

/// Checks the path of a version's file.
pub(crate) fn check_path(path: &str) -> Result<(), String> {
    let is_part = |part: &str| !part.is_empty() && part != "." && part != "..";
    match path.split('/').all(is_part) && !path.contains(['\\', '\0']) {
        true => Ok(()),
        false => Err(format!("`{}` is no path of a file", path.escape_debug())),
    }
}

fn digest_text(digest: &[u8; 32]) -> String {
    format!("sha256:{}", hex(digest))
}

/// Reads `sha256:` and 64 hexadecimal digits.
fn digest(text: &str) -> Result<[u8; 32], String> {
    let invalid = || format!("`{}` is no SHA-256", text.escape_debug());
    let digits = text.strip_prefix("sha256:").ok_or_else(invalid)?;
    if digits.len() != 64 || !digits.is_ascii() {
        return Err(invalid());
    }
    let mut digest = [0; 32];
    for (index, byte) in digest.iter_mut().enumerate() {
        let digits = &digits[2 * index..2 * index + 2];
        *byte = u8::from_str_radix(digits, 16).map_err(|_| invalid())?;
    }
    Ok(digest)
}

/// Writes a time by RFC 3339 in UTC, to the millisecond.
fn time_text(at: SystemTime) -> String {
    let whole = rfc3339(at);
    match at
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.subsec_millis())
    {
        0 => whole,
        millis => format!("{}.{millis:03}Z", whole.trim_end_matches('Z')),
    }
}

/// Reads what [`time_text`] writes: a time by RFC 3339 in UTC.
fn time(text: &str) -> Result<SystemTime, String> {
    let invalid = || {
        format!(
            "`{}` is no time: write `2026-01-31T12:00:00Z`",
            text.escape_debug()
        )
    };
    parse_time(text)
        .and_then(|since| UNIX_EPOCH.checked_add(since))
        .ok_or_else(invalid)
}

fn parse_time(text: &str) -> Option<Duration> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let numbers = |text: &str, separator| {
        let parts = text.split(separator).map(|part| part.parse::<u64>().ok());
        parts.collect::<Option<Vec<_>>>()?.try_into().ok()
    };
    let [year, month, day]: [u64; 3] = numbers(date, '-')?;
    let [hour, minute, second]: [u64; 3] = numbers(time, ':')?;
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let february = if is_leap { 29 } else { 28 };
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let index = usize::try_from(month).ok()?.checked_sub(1)?;
    let is_valid = (1970..=9999).contains(&year) && (1..=*months.get(index)?).contains(&day);
    if !is_valid || hour > 23 || minute > 59 || second > 59 || !(1..=9).contains(&fraction.len()) {
        return None;
    }
    let before = year - 1;
    let leap_days = before / 4 - before / 100 + before / 400 - 477;
    let days = 365 * (year - 1970) + leap_days + months[..index].iter().sum::<u64>() + day - 1;
    let nanos: u32 = format!("{fraction:0<9}").parse().ok()?;
    Some(Duration::new(
        ((days * 24 + hour) * 60 + minute) * 60 + second,
        nanos,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_comes_back_as_it_was_written() {
        for seconds in [
            0,
            951_782_399,
            951_782_400,
            951_868_800,
            1_709_210_096,
            1_735_689_599,
            4_107_542_400,
        ] {
            for millis in [0, 7, 999] {
                let at = UNIX_EPOCH + Duration::from_millis(seconds * 1000 + millis);
                assert_eq!(time(&time_text(at)), Ok(at));
            }
        }
        for text in [
            "",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00",
        ] {
            time(text).expect_err(text);
        }
    }

    #[test]
    fn every_name_has_a_file_name_of_its_own() {
        for (name, expected) in [
            ("get_weather", "get_weather"),
            ("a.b-c", "a.b-c"),
            ("..", "%2E."),
            (".git", "%2Egit"),
            ("a/b", "a%2Fb"),
            ("é%", "%C3%A9%25"),
        ] {
            assert_eq!(file_name(name), expected);
            assert_eq!(name_of(expected).as_deref(), Some(name));
        }
        for file in [".git", "", "a%2fb", "%ff", "a%62"] {
            assert_eq!(name_of(file), None, "{file}");
        }
    }
}
