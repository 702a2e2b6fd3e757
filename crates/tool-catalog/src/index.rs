use std::{cmp::Ordering, fmt::Write as _};

use raw_json::{JsonKind, RawJson};
use semver::Version;

use crate::{
    CatalogError, CatalogErrorKind, EntryRequest,
    foreign::{self, MAX_ENTRIES, MAX_INDEX_BYTES, MAX_TAGS, digest_text, is_catalog_path, shown},
};

/// Version of the format.
const FORMAT: &str = "1";
/// Maximum size of a tag, in bytes.
const MAX_TAG: usize = 64;

/// Index of a catalog: `index.json`.
///
/// # Examples
/// ```
/// use tool_catalog::CatalogIndex;
///
/// let text = r#"{"catalogVersion": 1, "entries": [{
///     "kind": "tool", "name": "greet", "version": "1.0.0", "bundle": "greet-1.0.0.json",
///     "digest": "sha256:0000000000000000000000000000000000000000000000000000000000000000"
/// }]}"#;
/// let index = CatalogIndex::parse("index.json", text.as_bytes())?;
/// assert_eq!(index.entries()[0].name, "greet");
/// let error = index.find(&"gret".parse()?).unwrap_err();
/// assert_eq!(error.hint(), Some("did you mean `greet`?"));
/// # Ok::<(), tool_catalog::CatalogError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CatalogIndex {
    entries: Vec<CatalogEntry>,
}

/// Entry of a [`CatalogIndex`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CatalogEntry {
    /// Kind of the content.
    pub kind: EntryKind,
    /// Name.
    pub name: String,
    /// Version.
    pub version: String,
    /// Title, for people.
    pub title: Option<String>,
    /// Description.
    pub description: String,
    /// Labels.
    pub tags: Vec<String>,
    /// Path of the bundle in the catalog.
    pub place: String,
    /// SHA-256 of the content: see [`Bundle::digest`](crate::Bundle::digest).
    pub digest: [u8; 32],
    /// Signature over the bytes of the bundle, unless it is in a file beside the bundle.
    pub signature: Option<EntrySignature>,
}

/// Kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum EntryKind {
    /// Version of a tool.
    Tool,
    /// Settings of a server.
    Server,
    /// A `server.json` of the MCP registry.
    McpServer,
}

/// Signature in an index.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntrySignature {
    /// Raw ed25519 (RFC 8032), in Base64.
    Ed25519(String),
    /// Text of a `.minisig` file.
    Minisign(String),
}

impl EntryKind {
    /// Returns the kind as a word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Server => "server",
            Self::McpServer => "mcp-server",
        }
    }

    /// Returns `true` for a tool, and `false` for a server.
    #[must_use]
    pub const fn is_tool(self) -> bool {
        matches!(self, Self::Tool)
    }
}

impl CatalogEntry {
    /// Creates an entry without description and signature.
    #[must_use]
    pub fn new(
        kind: EntryKind,
        name: impl Into<String>,
        version: impl Into<String>,
        place: impl Into<String>,
        digest: [u8; 32],
    ) -> Self {
        Self {
            kind,
            name: name.into(),
            version: version.into(),
            title: None,
            description: String::new(),
            tags: Vec::new(),
            place: place.into(),
            digest,
            signature: None,
        }
    }

    /// Compares two entries by name, kind and version: semantic versions by their order, others as text before them.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        let names = self.name.cmp(&other.name).then(self.kind.cmp(&other.kind));
        let parse = |entry: &Self| Version::parse(&entry.version).ok();
        names
            .then_with(|| parse(self).cmp(&parse(other)))
            .then_with(|| self.version.cmp(&other.version))
    }

    /// Returns `true` if the version is no pre-release.
    pub(crate) fn is_release(&self) -> bool {
        Version::parse(&self.version).is_ok_and(|version| version.pre.is_empty())
    }

    fn to_text(&self) -> String {
        let quoted = |text: &str| RawJson::from(text).as_str().to_owned();
        let mut members = vec![
            ("kind", quoted(self.kind.as_str())),
            ("name", quoted(&self.name)),
            ("version", quoted(&self.version)),
        ];
        if let Some(title) = &self.title {
            members.push(("title", quoted(title)));
        }
        if !self.description.is_empty() {
            members.push(("description", quoted(&self.description)));
        }
        if !self.tags.is_empty() {
            members.push(("tags", serde_json::json!(self.tags).to_string()));
        }
        members.push(("bundle", quoted(&self.place)));
        members.push(("digest", quoted(&digest_text(&self.digest))));
        if let Some(signature) = &self.signature {
            let (key, value) = match signature {
                EntrySignature::Ed25519(text) => ("ed25519", text),
                EntrySignature::Minisign(text) => ("minisign", text),
            };
            members.push(("signature", format!("{{\"{key}\": {}}}", quoted(value))));
        }
        let members = members
            .iter()
            .map(|(key, value)| format!("\n      \"{key}\": {value}"));
        format!("{{{}\n    }}", members.collect::<Vec<_>>().join(","))
    }
}

impl CatalogIndex {
    /// Reads an index. `place` is its name for messages.
    ///
    /// # Errors
    /// If the index is too large, has another structure, or lists a version twice.
    pub fn parse(place: &str, bytes: &[u8]) -> Result<Self, CatalogError> {
        let document = foreign::parse(place, bytes, MAX_INDEX_BYTES)?;
        let invalid = |problem: String| CatalogError::invalid(place, problem);
        match document.get("catalogVersion") {
            Some(version) if version.as_str() == FORMAT => {}
            Some(version) => {
                let version = shown(version.as_str());
                let problem =
                    format!("its `catalogVersion` is {version}; this program reads version {FORMAT}");
                return Err(invalid(problem).with_hint("use a newer program"));
            }
            None => {
                let problem = "it has no `catalogVersion`: it is not the index of a catalog".to_owned();
                return Err(invalid(problem).with_hint("`toolplane export` writes one"));
            }
        }
        for (key, _) in document.members() {
            if !matches!(&*key, "catalogVersion" | "entries") {
                return Err(invalid(format!("it has an unknown member `{}`", shown(&key))));
            }
        }
        let entries = document.get("entries");
        let entries = entries.filter(|entries| entries.kind() == JsonKind::Array);
        let entries = entries.ok_or_else(|| invalid("it has no list `entries`".to_owned()))?;
        let mut index = Self::default();
        for (number, entry) in entries.items().enumerate() {
            let place = format!("{place}: entry {}", number + 1);
            index.push(&place, read_entry(&place, &entry)?)?;
        }
        index.check_unique(place)?;
        Ok(index)
    }

    fn push(&mut self, place: &str, entry: CatalogEntry) -> Result<(), CatalogError> {
        if self.entries.len() >= MAX_ENTRIES {
            let problem = format!("it lists more than {MAX_ENTRIES} entries");
            return Err(CatalogError::invalid(place, problem));
        }
        self.entries.push(entry);
        Ok(())
    }

    /// Sorts the entries, and checks that none has a name and version of another one.
    fn check_unique(&mut self, place: &str) -> Result<(), CatalogError> {
        self.entries.sort_by(CatalogEntry::order);
        let twice = self
            .entries
            .windows(2)
            .find(|pair| pair[0].order(&pair[1]) == Ordering::Equal);
        match twice {
            Some(pair) => {
                let problem = format!("`{}@{}` is there twice", pair[0].name, pair[0].version);
                Err(CatalogError::invalid(place, problem))
            }
            None => Ok(()),
        }
    }

    /// Returns the entries, in the order of their names and versions.
    #[must_use]
    pub fn entries(&self) -> &[CatalogEntry] {
        &self.entries
    }

    /// Adds an entry. Returns `false` if it is there already.
    ///
    /// # Errors
    /// If the same version is there with another content, or the index is full.
    pub fn add(&mut self, entry: CatalogEntry) -> Result<bool, CatalogError> {
        let known = self
            .entries
            .iter()
            .find(|known| known.order(&entry) == Ordering::Equal);
        match known {
            Some(known) if known.digest == entry.digest => Ok(false),
            Some(known) => {
                let place = format!("{}@{}", known.name, known.version);
                let problem =
                    "the catalog has this version with another content, and a version never changes";
                Err(CatalogError::new(CatalogErrorKind::Mismatch, place, problem)
                    .with_hint("export the new content under a new version"))
            }
            None => {
                self.push("index.json", entry)?;
                self.entries.sort_by(CatalogEntry::order);
                Ok(true)
            }
        }
    }

    /// Finds the entry that a request names; without a version the newest release, or else the newest one.
    ///
    /// # Errors
    /// If there is none: with the nearest name, or the versions that there are.
    pub fn find(&self, request: &EntryRequest) -> Result<&CatalogEntry, CatalogError> {
        find_entry(&self.entries.iter().collect::<Vec<_>>(), request)
    }

    /// Returns the text of the index: equal for equal content.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("{{\n  \"catalogVersion\": {FORMAT},\n  \"entries\": [");
        for (index, entry) in self.entries.iter().enumerate() {
            let separator = if index == 0 { "" } else { "," };
            let _ = write!(text, "{separator}\n    {}", entry.to_text());
        }
        text.push_str(if self.entries.is_empty() {
            "]\n}\n"
        } else {
            "\n  ]\n}\n"
        });
        text
    }
}

/// Finds the entry that a request names; without a version the newest release, or else the newest one.
///
/// # Errors
/// If there is none: with the nearest name, or the versions that there are.
pub fn find_entry<'a>(
    entries: &[&'a CatalogEntry],
    request: &EntryRequest,
) -> Result<&'a CatalogEntry, CatalogError> {
    let named: Vec<&CatalogEntry> = entries
        .iter()
        .copied()
        .filter(|entry| entry.name == request.name)
        .collect();
    let not_found = |problem: String| CatalogError::new(CatalogErrorKind::NotFound, "", problem);
    if named.is_empty() {
        let mut names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        names.dedup();
        let failure = not_found(format!("there is no `{}` in the catalog", shown(&request.name)));
        return Err(match nearest(&request.name, &names) {
            Some(near) => failure.with_hint(format!("did you mean `{near}`?")),
            None => failure.with_hint("`toolplane catalog search` lists what there is"),
        });
    }
    let found = match &request.version {
        Some(version) => named.iter().copied().find(|entry| entry.version == *version),
        None => named
            .iter()
            .copied()
            .filter(|entry| entry.is_release())
            .max_by(|a, b| a.order(b))
            .or_else(|| named.iter().copied().max_by(|a, b| a.order(b))),
    };
    found.ok_or_else(|| {
        let versions: Vec<&str> = named.iter().map(|entry| entry.version.as_str()).collect();
        let version = shown(request.version.as_deref().unwrap_or_default());
        let failure = not_found(format!(
            "`{}` has no version `{version}` in the catalog",
            request.name
        ));
        failure.with_hint(format!("there are {}", tool_settings::suggest::list(&versions)))
    })
}

/// Returns the known name that was probably meant, also by its part after the last `/`.
fn nearest<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    if let Some(near) = tool_settings::suggest::nearest(written, known) {
        return Some(near);
    }
    fn last(name: &str) -> &str {
        name.rsplit('/').next().unwrap_or(name)
    }
    let parts: Vec<&str> = known.iter().map(|name| last(name)).collect();
    let near = tool_settings::suggest::nearest(last(written), &parts)?;
    known.iter().copied().find(|name| last(name) == near)
}

fn read_entry(place: &str, entry: &RawJson) -> Result<CatalogEntry, CatalogError> {
    let invalid = |problem: String| CatalogError::invalid(place, problem);
    if entry.kind() != JsonKind::Object {
        return Err(invalid("it is no object".to_owned()));
    }
    const KNOWN: [&str; 9] = [
        "kind",
        "name",
        "version",
        "title",
        "description",
        "tags",
        "bundle",
        "digest",
        "signature",
    ];
    if let Some((key, _)) = entry.members().find(|(key, _)| !KNOWN.contains(&&**key)) {
        return Err(invalid(format!("it has an unknown member `{}`", shown(&key))));
    }
    let optional = |key: &str| -> Result<Option<String>, CatalogError> {
        match entry.get(key) {
            None => Ok(None),
            Some(value) => match value.string() {
                Some(text) => Ok(Some(text)),
                None => Err(invalid(format!("its `{key}` is no text"))),
            },
        }
    };
    let text = |key: &str| -> Result<String, CatalogError> {
        optional(key)?.ok_or_else(|| invalid(format!("it has no `{key}`")))
    };
    let kind = match text("kind")?.as_str() {
        "tool" => EntryKind::Tool,
        "server" => EntryKind::Server,
        "mcp-server" => EntryKind::McpServer,
        other => {
            let problem = format!(
                "its kind is `{}`: there are `tool`, `server` and `mcp-server`",
                shown(other)
            );
            return Err(invalid(problem));
        }
    };
    let (name, version) = (text("name")?, text("version")?);
    let description = optional("description")?.unwrap_or_default();
    foreign::check_texts(place, &name, &version, &description)?;
    let bundle = text("bundle")?;
    if !is_catalog_path(&bundle) {
        let problem = format!("its bundle `{}` is no path inside the catalog", shown(&bundle));
        return Err(invalid(problem).with_hint("it must be relative, with `/`, without `.` and `..`"));
    }
    let digest = text("digest")?;
    let digest = foreign::parse_digest(&digest)
        .ok_or_else(|| invalid("its `digest` is not `sha256:` and 64 hexadecimal digits".to_owned()))?;
    let mut read = CatalogEntry::new(kind, name, version, bundle, digest);
    read.title = optional("title")?.filter(|title| title.len() <= foreign::MAX_NAME);
    read.description = description;
    read.tags = tags(place, entry.get("tags").as_ref())?;
    read.signature = match entry.get("signature") {
        Some(signature) => Some(read_signature(place, &signature)?),
        None => None,
    };
    Ok(read)
}

/// Reads labels.
pub(crate) fn tags(place: &str, tags: Option<&RawJson>) -> Result<Vec<String>, CatalogError> {
    let Some(tags) = tags else {
        return Ok(Vec::new());
    };
    let read: Option<Vec<String>> = tags
        .items()
        .map(|tag| tag.string().filter(|tag| tag.len() <= MAX_TAG))
        .take(MAX_TAGS + 1)
        .collect();
    match read {
        Some(read) if tags.kind() == JsonKind::Array && read.len() <= MAX_TAGS => Ok(read),
        _ => {
            let problem =
                format!("its `tags` are no list of up to {MAX_TAGS} texts of up to {MAX_TAG} bytes");
            Err(CatalogError::invalid(place, problem))
        }
    }
}

fn read_signature(place: &str, signature: &RawJson) -> Result<EntrySignature, CatalogError> {
    let mut members = signature.members();
    let read = match (members.next(), members.next()) {
        (Some((key, value)), None) => match (&*key, value.string()) {
            ("ed25519", Some(text)) => Some(EntrySignature::Ed25519(text)),
            ("minisign", Some(text)) => Some(EntrySignature::Minisign(text)),
            _ => None,
        },
        _ => None,
    };
    read.ok_or_else(|| {
        CatalogError::invalid(
            place,
            "its `signature` is neither `{\"ed25519\": ..}` nor `{\"minisign\": ..}`",
        )
    })
}
