use raw_json::{JsonKind, JsonLimits, RawJson};
use tool_core::Descriptor;
use tool_manifest::{Configuration, Defaults, Diagnostics, LoadOptions, ServerSpec, Severity, Syntax};
use tool_registry::semver::Version;
use tool_registry::{NewVersion, PublishError, ToolFile};
use tool_settings::suggest;

use super::{Authoring, AuthoringError, DraftFiles, DraftProblem};

/// Maximum size of a manifest, in bytes.
const MAX_MANIFEST: usize = 64 << 10;
/// Maximum depth of a manifest.
const MAX_DEPTH: usize = 64;
/// Keys of a manifest of Kiwi.
const KIWI_KEYS: &[&str] = &[
    "capabilities",
    "description",
    "examples",
    "executor_config",
    "name",
    "parameters",
    "required_permissions",
    "tags",
    "tool_id",
    "tool_type",
    "version",
];
/// Name of the manifest in messages.
const MANIFEST: &str = "manifest";

/// Request to store a draft.
#[derive(Debug, Clone)]
#[must_use]
pub struct DraftRequest {
    pub(super) manifest: RawJson,
    pub(super) files: DraftFiles,
    pub(super) version: Option<String>,
}

/// Kind of a request to store a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DraftMode {
    /// The tool is new.
    Create,
    /// The tool exists, and the draft is a new version of it or replaces a draft.
    Update,
}

impl DraftRequest {
    /// Creates a request from a manifest of one tool, in our own dialect or that of Kiwi.
    pub fn new(manifest: RawJson) -> Self {
        Self {
            manifest,
            files: DraftFiles::new(),
            version: None,
        }
    }

    /// Adds a file, such as the code, by its relative path.
    pub fn file(mut self, path: impl Into<String>, content: impl Into<tool_registry::bytes::Bytes>) -> Self {
        self.files.insert(path.into(), content.into());
        self
    }

    /// Sets the version of a manifest that states none.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }
}

/// Draft as it was read.
pub(super) struct ReadDraft {
    pub(super) new: NewVersion,
    /// Descriptor without the marks of a stored version.
    pub(super) descriptor: Descriptor,
    /// Server that the manifest describes, with its settings.
    pub(super) server: Option<(ServerSpec, RawJson)>,
    /// `true` if the manifest is in the dialect of Kiwi.
    is_kiwi: bool,
}

impl ReadDraft {
    /// Returns the path of a field in the manifest as it is written, by its path in the descriptor, such as `executor.url`.
    pub(super) fn locate(&self, path: &str) -> String {
        let (field, rest) = match path.split_once('.') {
            Some((field, rest)) => (field, Some(rest)),
            None => (path, None),
        };
        let written = match (field, self.is_kiwi) {
            ("", _) => return String::new(),
            ("executor", true) if rest == Some("kind") => return "tool_type".to_owned(),
            ("executor", true) => "executor_config".to_owned(),
            ("input_schema", true) => "parameters".to_owned(),
            ("name", true) => "tool_id".to_owned(),
            ("name", false) => "metadata.name".to_owned(),
            (field, true) => field.to_owned(),
            (field, false) => format!("spec.{field}"),
        };
        match rest {
            Some(rest) => format!("{written}.{rest}"),
            None => written,
        }
    }
}

/// Reads a request.
pub(super) async fn read(
    authoring: &Authoring,
    request: DraftRequest,
    mode: super::DraftMode,
) -> Result<ReadDraft, AuthoringError> {
    let invalid = |problem| Err(AuthoringError::Invalid(vec![problem]));
    let text = request.manifest.as_str();
    if text.len() > MAX_MANIFEST {
        let message = format!("the manifest has {} bytes", text.len());
        let fix = format!("at most {MAX_MANIFEST} are allowed; put code into `files`");
        return invalid(DraftProblem::new("", "size", message, fix));
    }
    if let Err(error) = raw_json::validate(text, JsonLimits::STRICT.with_depth(MAX_DEPTH)) {
        let fix = "write each key once, and fewer levels";
        return invalid(DraftProblem::new("", "json", error.to_string(), fix));
    }
    // Other documents of a configuration could include files of this machine.
    let is_known = |key: &str| request.manifest.get(key).is_some();
    if request.manifest.kind() != JsonKind::Object || !(is_known("tool_id") || is_known("apiVersion")) {
        let fix = "write `{\"tool_id\": .., \"tool_type\": .., \"description\": .., \"executor_config\": {..}, \"parameters\": [..]}`, \
                   or a manifest with `apiVersion` and `kind: Tool`";
        return invalid(DraftProblem::new(
            "",
            "dialect",
            "this is no manifest of a tool",
            fix,
        ));
    }
    let unknown = unknown_keys(&request.manifest);
    if !unknown.is_empty() {
        return Err(AuthoringError::Invalid(unknown));
    }
    let options = LoadOptions::new().text(MANIFEST, Syntax::Json, text);
    let loaded = match crate::manifest::load_without_files(&options) {
        Ok(loaded) => loaded,
        Err(problems) => return Err(AuthoringError::Invalid(of_diagnostics(&problems))),
    };
    let configuration = &loaded.configuration;
    let mut rest = configuration.clone();
    let (tools, servers) = (std::mem::take(&mut rest.tools), std::mem::take(&mut rest.servers));
    let ([tool], true) = (&*tools, rest == Configuration::default()) else {
        let message = format!("the manifest describes {} tools, not one", tools.len());
        let fix = "write one tool and nothing else: `kind: Tool`";
        return invalid(DraftProblem::new("", "dialect", message, fix));
    };
    let server = servers.into_iter().next();
    let server = server.and_then(|spec| {
        let settings = loaded.server_settings(&spec.name)?;
        Some((spec, settings))
    });
    let manifest = loaded
        .manifest(&tool.name)
        .unwrap_or_else(|| request.manifest.clone());
    let descriptor = Descriptor::clone(tool);
    let version = version(authoring, &descriptor, request.version.as_deref(), mode).await?;
    let files = request.files.into_iter();
    let files = files.map(|(path, content)| (path, ToolFile::new(content)));
    let new = NewVersion::new(descriptor.name.clone(), version, manifest).with_files(files.collect());
    Ok(ReadDraft {
        new,
        descriptor,
        server,
        is_kiwi: is_known("tool_id"),
    })
}

/// Returns a problem for each key of a manifest of Kiwi that has no meaning. Files may have such keys; a model that writes one has
/// meant another.
fn unknown_keys(manifest: &RawJson) -> Vec<DraftProblem> {
    if manifest.get("tool_id").is_none() {
        return Vec::new();
    }
    let keys = manifest.members().map(|(key, _)| key);
    let unknown = keys.filter(|key| !KIWI_KEYS.contains(&&**key));
    unknown
        .map(|key| {
            let fix = match suggest::nearest(&key, KIWI_KEYS) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("remove it; there are {}", KIWI_KEYS.join(", ")),
            };
            let shown: String = key.chars().take(40).collect();
            DraftProblem::new(
                "",
                "manifest",
                format!("unknown field `{}`", shown.escape_debug()),
                fix,
            )
        })
        .collect()
}

/// Returns the version of a draft: the written one, or 1.0.0 for a new tool.
async fn version(
    authoring: &Authoring,
    tool: &Descriptor,
    given: Option<&str>,
    mode: super::DraftMode,
) -> Result<Version, AuthoringError> {
    let problem = |message: String, fix: String| {
        let problem = DraftProblem::new("version", "version", message, fix);
        Err(AuthoringError::Invalid(vec![problem]))
    };
    match given.or(tool.version.as_deref()) {
        Some(written) => match Version::parse(written) {
            Ok(version) => Ok(version),
            Err(_) => {
                let shown: String = written.chars().take(40).collect();
                let message = format!("`{}` is no semantic version", shown.escape_debug());
                problem(message, "write three numbers, such as `1.0.0`".to_owned())
            }
        },
        None if mode == super::DraftMode::Create => Ok(Version::new(1, 0, 0)),
        None => {
            let record = authoring.publisher.store().tool(&tool.name).await?;
            let draft = record.as_ref().and_then(tool_registry::ToolRecord::newest_draft);
            match draft {
                Some(draft) => Ok(draft.version.clone()),
                None => {
                    let latest = record.and_then(|record| record.latest);
                    let next = latest.map(|latest| format!(", such as `{}`", next_minor(&latest)));
                    let fix = format!("write the number of the new version{}", next.unwrap_or_default());
                    problem("the version is missing".to_owned(), fix)
                }
            }
        }
    }
}

fn next_minor(version: &Version) -> Version {
    Version::new(version.major, version.minor + 1, 0)
}

fn of_diagnostics(problems: &Diagnostics) -> Vec<DraftProblem> {
    let errors = problems
        .iter()
        .filter(|problem| problem.severity == Severity::Error);
    errors
        .map(|problem| {
            let location = problem.location.as_deref();
            let path = location
                .map(|location| location.field.clone())
                .unwrap_or_default();
            let fix = problem.hint.clone().unwrap_or_default();
            DraftProblem::new(path, "manifest", problem.message.clone(), fix)
        })
        .collect()
}

/// Returns `true` if the code of a tool requires packages that are not locked yet.
pub(super) fn is_unlocked(descriptor: &Descriptor) -> bool {
    #[cfg(feature = "exec-script")]
    return !crate::is_locked(descriptor);
    #[cfg(not(feature = "exec-script"))]
    {
        let _ = descriptor;
        false
    }
}

/// Adds the file with the locked packages that the code of a tool requires.
#[cfg(feature = "exec-script")]
pub(super) async fn lock(
    defaults: &Defaults,
    descriptor: &Descriptor,
    new: &mut NewVersion,
) -> Result<(), AuthoringError> {
    let mut with_files = descriptor.clone();
    let files = new.files.iter();
    with_files.files = files
        .map(|(path, file)| (path.clone(), file.content.clone()))
        .collect();
    let locked = crate::lock_requirements(defaults, &with_files, false).await;
    let failed = |error| AuthoringError::Requirements(descriptor.name.to_string(), chain(&error));
    if let Some((path, content)) = locked.map_err(failed)? {
        new.files.insert(path.to_owned(), ToolFile::new(content));
    }
    Ok(())
}

#[cfg(feature = "exec-script")]
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}

#[cfg(not(feature = "exec-script"))]
pub(super) async fn lock(_: &Defaults, _: &Descriptor, _: &mut NewVersion) -> Result<(), AuthoringError> {
    Ok(())
}

/// Returns the problem of a version that is against the rules of versions.
pub(super) fn of_publication(error: &PublishError) -> DraftProblem {
    let (rule, fix) = match error {
        PublishError::Breaking(reason) | PublishError::Unproven(reason) => (
            "compatibility",
            format!(
                "write `{}` as the version, or accept all that `{}` did",
                reason.needed, reason.before
            ),
        ),
        PublishError::NotNewer { newest, .. } => (
            "version",
            format!(
                "write a version after `{newest}`, such as `{}`",
                next_minor(newest)
            ),
        ),
        PublishError::Immutable { version, .. } => (
            "immutable",
            format!("write another version, such as `{}`", next_minor(version)),
        ),
        _ => ("version", String::new()),
    };
    DraftProblem::new("version", rule, error.to_string(), fix)
}
