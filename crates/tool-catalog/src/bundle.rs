use std::{collections::BTreeMap, fmt::Write as _};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use raw_json::{JsonKind, RawJson};
use semver::Version;
use tool_core::is_relative_path;
use tool_registry::{NewVersion, ToolFile};

use crate::{
    CatalogEntry, CatalogError, CatalogErrorKind, CatalogNeeds, EntryKind, McpServerJson,
    foreign::{self, MAX_BUNDLE_BYTES, compact, digest_text, shown},
};

/// Version of the format.
const FORMAT: &str = "1";
/// Maximum number of files of a version.
const MAX_FILES: usize = 256;
/// Maximum size of all files of a version, in bytes.
const MAX_FILE_BYTES: usize = 8 << 20;
/// Maximum size of a manifest or of settings, in bytes.
const MAX_DOCUMENT_BYTES: usize = 1 << 20;

/// A version of a tool, or a server, as one JSON document. [`CatalogKey`](crate::CatalogKey) checks the signature over its exact
/// bytes.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Bundle {
    /// Name.
    pub name: String,
    /// Version; a semantic version if it is a tool's.
    pub version: String,
    /// Description, for lists.
    pub description: String,
    /// Labels, for searches.
    pub tags: Vec<String>,
    /// Needs of an installation, as the publisher states it. Whoever installs the bundle reads that from its content.
    pub needs: CatalogNeeds,
    /// Content.
    pub content: BundleContent,
}

/// Content of a [`Bundle`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum BundleContent {
    /// A version of a tool.
    Tool(NewVersion),
    /// Settings of a server: an entry of `servers` in a configuration.
    Server(RawJson),
    /// A `server.json` of the MCP registry.
    McpServer(Box<McpServerJson>),
}

impl Bundle {
    /// Makes the bundle of a version of a tool.
    ///
    /// # Errors
    /// If the name or the description is not usable.
    pub fn of_tool(version: &NewVersion, description: &str) -> Result<Self, CatalogError> {
        let manifest = compact(&version.manifest);
        let content = NewVersion::new(version.tool.clone(), version.version.clone(), manifest)
            .with_files(version.files.clone());
        Self::new(
            &version.tool,
            &version.version.to_string(),
            description,
            BundleContent::Tool(content),
        )
    }

    /// Makes the bundle of a server.
    ///
    /// # Errors
    /// If the name, the version or the description is not usable.
    pub fn of_server(
        name: &str,
        version: &str,
        settings: &RawJson,
        description: &str,
    ) -> Result<Self, CatalogError> {
        Self::new(
            name,
            version,
            description,
            BundleContent::Server(compact(settings)),
        )
    }

    fn new(
        name: &str,
        version: &str,
        description: &str,
        content: BundleContent,
    ) -> Result<Self, CatalogError> {
        let place = format!("{name}@{version}");
        foreign::check_texts(&place, name, version, description)?;
        Ok(Self {
            name: name.to_owned(),
            version: version.to_owned(),
            description: description.to_owned(),
            tags: Vec::new(),
            needs: CatalogNeeds::default(),
            content,
        })
    }

    /// Sets the labels.
    #[must_use]
    pub fn with_tags(mut self, tags: impl IntoIterator<Item = String>) -> Self {
        self.tags = tags.into_iter().take(foreign::MAX_TAGS).collect();
        self
    }

    /// Sets the needs of an installation.
    #[must_use]
    pub fn with_needs(mut self, needs: CatalogNeeds) -> Self {
        self.needs = needs;
        self
    }

    /// Reads a bundle, or a `server.json` of the MCP registry. `place` is its path in the catalog.
    ///
    /// # Errors
    /// If the document is too large, has another structure, or its digest is not that of its content.
    pub fn parse(place: &str, bytes: &[u8]) -> Result<Self, CatalogError> {
        let document = foreign::parse(place, bytes, MAX_BUNDLE_BYTES)?;
        if document.kind() != JsonKind::Object {
            return Err(CatalogError::invalid(place, "it is no JSON object"));
        }
        match document.get("bundleVersion") {
            Some(version) if version.as_str() == FORMAT => read(place, &document),
            Some(version) => {
                let problem = format!(
                    "its `bundleVersion` is {}; this program reads version {FORMAT}",
                    shown(version.as_str())
                );
                Err(CatalogError::invalid(place, problem).with_hint("use a newer program"))
            }
            None => {
                let server = McpServerJson::read(place, &document)?;
                let (name, version) = (server.name.clone(), server.version.clone());
                let description = server.description.clone();
                let content = BundleContent::McpServer(Box::new(server));
                Self::new(&name, &version, &description, content)
            }
        }
    }

    /// Returns the kind of the content.
    #[must_use]
    pub fn kind(&self) -> EntryKind {
        match &self.content {
            BundleContent::Tool(_) => EntryKind::Tool,
            BundleContent::Server(_) => EntryKind::Server,
            BundleContent::McpServer(_) => EntryKind::McpServer,
        }
    }

    /// Returns the SHA-256 of the content: that of the version of a tool ([`NewVersion::digest`]), or of the canonical form
    /// (RFC 8785) of the settings of a server or of a `server.json`.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        match &self.content {
            BundleContent::Tool(version) => version.digest(),
            BundleContent::Server(settings) => raw_json::digest(settings),
            BundleContent::McpServer(server) => raw_json::digest(server.document()),
        }
    }

    /// Returns the entry of the index that lists this bundle.
    #[must_use]
    pub fn entry(&self) -> CatalogEntry {
        let ending = match self.kind() {
            EntryKind::McpServer => "server.json",
            EntryKind::Server => "server-bundle.json",
            EntryKind::Tool => "json",
        };
        let file_name = self.name.replace('/', "_");
        let place = format!("{file_name}-{}.{ending}", self.version);
        let mut entry = CatalogEntry::new(self.kind(), &self.name, &self.version, place, self.digest());
        entry.description.clone_from(&self.description);
        entry.tags.clone_from(&self.tags);
        if let BundleContent::McpServer(server) = &self.content {
            entry.title.clone_from(&server.title);
        }
        entry
    }

    /// Checks that this bundle is the one that an entry names.
    ///
    /// # Errors
    /// If it has another kind, name, version or digest.
    pub fn check(&self, entry: &CatalogEntry) -> Result<(), CatalogError> {
        let digest = self.digest();
        let differences = [
            (
                "kind",
                self.kind().as_str().to_owned(),
                entry.kind.as_str().to_owned(),
            ),
            ("name", self.name.clone(), entry.name.clone()),
            ("version", self.version.clone(), entry.version.clone()),
            ("digest", digest_text(&digest), digest_text(&entry.digest)),
        ];
        let Some((what, own, listed)) = differences.into_iter().find(|(_, own, listed)| own != listed) else {
            return Ok(());
        };
        let problem = format!("its {what} is `{own}`, and the index lists `{listed}`");
        Err(
            CatalogError::new(CatalogErrorKind::Mismatch, &entry.place, problem)
                .with_hint("one of the two was changed: ask whoever publishes the catalog"),
        )
    }

    /// Returns the text of the bundle: equal for equal content.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut members = vec![
            ("bundleVersion", FORMAT.to_owned()),
            ("kind", quoted(self.kind().as_str())),
            ("name", quoted(&self.name)),
            ("version", quoted(&self.version)),
            ("description", quoted(&self.description)),
        ];
        if !self.tags.is_empty() {
            members.push(("tags", serde_json::json!(self.tags).to_string()));
        }
        members.push(("digest", quoted(&digest_text(&self.digest()))));
        if !self.needs.is_empty() {
            members.push(("needs", self.needs.to_json().as_str().to_owned()));
        }
        match &self.content {
            BundleContent::Tool(version) => {
                members.push(("manifest", version.manifest.as_str().to_owned()));
                if !version.files.is_empty() {
                    members.push(("files", files_text(&version.files)));
                }
            }
            BundleContent::Server(settings) => members.push(("settings", settings.as_str().to_owned())),
            // A document of another format is passed on as it is.
            BundleContent::McpServer(server) => return format!("{}\n", server.document().as_str()),
        }
        let mut text = "{".to_owned();
        for (index, (key, value)) in members.iter().enumerate() {
            let separator = if index == 0 { "" } else { "," };
            let _ = write!(text, "{separator}\n  {}: {value}", quoted(key));
        }
        text.push_str("\n}\n");
        text
    }
}

fn read(place: &str, document: &RawJson) -> Result<Bundle, CatalogError> {
    let text = |key: &str| -> Result<String, CatalogError> {
        let value = document.get(key).and_then(|value| value.string());
        value.ok_or_else(|| CatalogError::invalid(place, format!("it has no text `{key}`")))
    };
    let (kind, name, version) = (text("kind")?, text("name")?, text("version")?);
    let own = match kind.as_str() {
        "tool" => ["manifest", "files"],
        "server" => ["settings", "settings"],
        other => {
            let problem = format!(
                "its kind is `{}`, which is neither `tool` nor `server`",
                shown(other)
            );
            return Err(CatalogError::invalid(place, problem));
        }
    };
    let common = [
        "bundleVersion",
        "kind",
        "name",
        "version",
        "description",
        "tags",
        "digest",
        "needs",
    ];
    let unknown = document
        .members()
        .find(|(key, _)| !common.contains(&&**key) && !own.contains(&&**key));
    if let Some((key, _)) = unknown {
        let problem = format!("it has an unknown member `{}`", shown(&key));
        return Err(CatalogError::invalid(place, problem));
    }
    let description = match document.get("description") {
        Some(_) => text("description")?,
        None => String::new(),
    };
    foreign::check_texts(place, &name, &version, &description)?;
    let content = match kind.as_str() {
        "tool" => BundleContent::Tool(read_tool(place, document, &name, &version)?),
        _ => BundleContent::Server(object(place, document, "settings")?),
    };
    let needs = document
        .get("needs")
        .map(|needs| CatalogNeeds::from_json(&needs))
        .unwrap_or_default();
    let bundle = Bundle::new(&name, &version, &description, content)?
        .with_tags(crate::index::tags(place, document.get("tags").as_ref())?)
        .with_needs(needs);
    let stated = foreign::parse_digest(&text("digest")?);
    if stated != Some(bundle.digest()) {
        let problem = format!(
            "its content has the digest `{}`, and it states another one",
            digest_text(&bundle.digest())
        );
        return Err(CatalogError::new(CatalogErrorKind::Mismatch, place, problem)
            .with_hint("the bundle was changed after it was exported: ask whoever publishes the catalog"));
    }
    Ok(bundle)
}

fn read_tool(place: &str, document: &RawJson, name: &str, version: &str) -> Result<NewVersion, CatalogError> {
    let number = Version::parse(version).map_err(|_| {
        let problem = format!("`{}` is no semantic version", shown(version));
        CatalogError::invalid(place, problem)
    })?;
    if let Err(error) = tool_core::check_name(name) {
        return Err(CatalogError::invalid(place, error.to_string()));
    }
    let manifest = object(place, document, "manifest")?;
    let files = match document.get("files") {
        Some(files) => read_files(place, &files)?,
        None => BTreeMap::new(),
    };
    Ok(NewVersion::new(name, number, manifest).with_files(files))
}

fn object(place: &str, document: &RawJson, key: &str) -> Result<RawJson, CatalogError> {
    let value = document.get(key).filter(|value| value.kind() == JsonKind::Object);
    let value = value.ok_or_else(|| CatalogError::invalid(place, format!("it has no object `{key}`")))?;
    if value.len() > MAX_DOCUMENT_BYTES {
        let problem = format!("its `{key}` has more than {MAX_DOCUMENT_BYTES} bytes");
        return Err(CatalogError::invalid(place, problem));
    }
    Ok(compact(&value))
}

fn read_files(place: &str, files: &RawJson) -> Result<BTreeMap<String, ToolFile>, CatalogError> {
    let invalid = |problem: String| CatalogError::invalid(place, problem);
    if files.kind() != JsonKind::Object {
        return Err(invalid("its `files` are no object".to_owned()));
    }
    let mut read = BTreeMap::new();
    let mut n_bytes = 0;
    for (path, file) in files.members() {
        if !is_relative_path(&path) {
            let problem = format!(
                "`{}` is no path of a file: it must be relative, with `/`, without `.` and `..`",
                shown(&path)
            );
            return Err(invalid(problem));
        }
        let mut members = file.members();
        let content = match (members.next(), members.next()) {
            (Some((key, value)), None) if &*key == "text" => value.string().map(String::into_bytes),
            (Some((key, value)), None) if &*key == "base64" => {
                value.string().and_then(|text| STANDARD.decode(text).ok())
            }
            _ => None,
        };
        let content = content.ok_or_else(|| {
            invalid(format!(
                "the file `{}` has neither `text` nor `base64`",
                shown(&path)
            ))
        })?;
        n_bytes += content.len();
        if n_bytes > MAX_FILE_BYTES || read.len() >= MAX_FILES {
            return Err(invalid(format!(
                "it has more than {MAX_FILES} files or {MAX_FILE_BYTES} bytes in them"
            )));
        }
        read.insert(path.into_owned(), ToolFile::new(content));
    }
    Ok(read)
}

fn files_text(files: &BTreeMap<String, ToolFile>) -> String {
    let files = files.iter().map(|(path, file)| {
        let text = std::str::from_utf8(&file.content).ok().map(quoted);
        // Text of many escapes is shorter in Base64, so that every bundle can be read again.
        let text = text.filter(|text| text.len() <= file.content.len() / 3 * 4 + 8);
        let content = match text {
            Some(text) => format!("{{\"text\": {text}}}"),
            None => format!("{{\"base64\": {}}}", quoted(&STANDARD.encode(&file.content))),
        };
        format!("\n    {}: {content}", quoted(path))
    });
    format!("{{{}\n  }}", files.collect::<Vec<_>>().join(","))
}

fn quoted(text: &str) -> String {
    RawJson::from(text).as_str().to_owned()
}
