use std::{
    collections::HashSet,
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use raw_json::RawJson;
use serde_json::Value;
use tool_core::PrepareError;
use tool_settings::Sections;

use crate::{
    Configuration, Diagnostic, Diagnostics, Location, ProcessSecrets, Severity, Syntax,
    clients::Surroundings,
    diagnostics::report::Report,
    dialects::{
        detect,
        manifest::{API_VERSION, PROMPTKIT_VERSION},
    },
    document::{
        place::Place,
        source::{MAX_FILE_BYTES, SourceFile},
    },
    loading::{
        code_files,
        draft::{Draft, Places},
    },
    tools::tool::{ToolPlaces, WrittenAs},
};

/// Extensions of the files of a directory that are read.
const EXTENSIONS: [&str; 4] = ["yaml", "yml", "json", "jsonc"];
/// Settings of a server that a tool may hold.
const INLINE_KEYS: [&str; 7] = ["transport", "command", "args", "env", "cwd", "url", "headers"];
/// Maximum number of files of a run.
const MAX_FILES: usize = 10_000;

/// Files, directories and texts to load.
///
/// # Examples
/// ```
/// use tool_manifest::{LoadOptions, Syntax, load};
/// use tool_settings::Sections;
///
/// let loaded = load(&LoadOptions::new().text("example.yaml", Syntax::Yaml, "
/// tools:
///   greet:
///     description: Says hello
///     executor: {kind: mock, result: {text: hello}}
/// "), &Sections::default())?;
/// assert_eq!(&*loaded.configuration.tools[0].name, "greet");
/// # Ok::<(), tool_manifest::Diagnostics>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    inputs: Vec<Input>,
    /// Kinds of executors whose tools have files.
    kinds_with_files: Vec<&'static str>,
    working_directory: Option<PathBuf>,
}

#[derive(Debug, Clone)]
enum Input {
    Path(PathBuf),
    Text {
        name: String,
        syntax: Syntax,
        text: String,
    },
}

impl LoadOptions {
    /// No inputs yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file, or a directory whose YAML and JSON files are read in the order of their names.
    #[must_use]
    pub fn path(mut self, path: impl Into<PathBuf>) -> Self {
        self.inputs.push(Input::Path(path.into()));
        self
    }

    /// Adds a text under a name for messages. Relative paths in it begin in the working directory.
    #[must_use]
    pub fn text(mut self, name: impl Into<String>, syntax: Syntax, text: impl Into<String>) -> Self {
        self.inputs.push(Input::Text {
            name: name.into(),
            syntax,
            text: text.into(),
        });
        self
    }

    /// Sets the directory that chooses among the projects in a file of a client; the working directory of the process by default.
    #[must_use]
    pub fn working_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.working_directory = Some(directory.into());
        self
    }

    /// Reads the files of tools with executors of these kinds into their descriptors: those that `file`, `entrypoint` and a
    /// list `files` name, in the directory of the file that describes the tool. Without this, descriptors have no files.
    #[must_use]
    pub fn kinds_with_files(mut self, kinds: &[&'static str]) -> Self {
        self.kinds_with_files = kinds.to_vec();
        self
    }
}

/// A usable configuration, with the warnings about it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Loaded {
    /// The configuration.
    pub configuration: Configuration,
    /// Warnings, and the errors of files in directories, which were left out.
    pub diagnostics: Vec<Diagnostic>,
    /// Every file and directory that was read, in order: those to watch for changes.
    pub files: Vec<PathBuf>,
    pub(crate) places: Places,
    directory: PathBuf,
}

/// A part of a tool that another crate may find a problem in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConfigPart {
    /// The tool as a whole.
    Tool,
    /// The settings of its executor.
    Settings,
    /// The schema of its arguments.
    InputSchema,
    /// The schema of its results.
    OutputSchema,
}

impl Loaded {
    /// Returns `true` if files were left out because of errors.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.diagnostics
            .iter()
            .any(|problem| problem.severity == Severity::Error)
    }

    /// Returns the present values of `${…}` references: the process's environment, files relative to the first
    /// configuration file, and the configured secrets.
    #[must_use]
    pub fn secrets(&self) -> ProcessSecrets {
        ProcessSecrets::of_process(self.configuration.secrets.clone()).relative_to(self.directory.clone())
    }

    /// Returns the place of a part of a tool: the value at a JSON Pointer from the part's root, or the last one on
    /// the way there that exists.
    #[must_use]
    pub fn locate(&self, tool: &str, part: ConfigPart, pointer: &str) -> Option<Location> {
        let places = self.places.tools.get(tool)?;
        let document = &places.name.document;
        let root = match part {
            ConfigPart::Tool if pointer.is_empty() => return Some(places.name.key_location()),
            ConfigPart::Tool => return Some(document.key_location(document.descend(places.tool, pointer))),
            ConfigPart::Settings => return Some(places.settings_location(pointer)),
            ConfigPart::InputSchema => places.input_schema,
            ConfigPart::OutputSchema => places.output_schema,
        };
        Some(match root {
            Some(root) => document.location(document.descend(root, pointer)),
            None => places.name.key_location(),
        })
    }

    /// Returns the place of a server or endpoint: the value at a JSON Pointer from its settings, or the last one on the way
    /// there that exists.
    #[must_use]
    pub fn locate_server(&self, server: &str, pointer: &str) -> Option<Location> {
        let place = self.places.servers.get(server);
        let Place { document, at } = place.or_else(|| self.places.endpoints.get(server))?;
        Some(match pointer {
            "" => document.key_location(*at),
            pointer => document.location(document.descend(*at, pointer)),
        })
    }

    /// Returns a document that describes this tool alone and loads as it does here: what a store keeps. Comments are not
    /// part of it. `None` if there is no such tool.
    #[must_use]
    pub fn manifest(&self, tool: &str) -> Option<RawJson> {
        let places = self.places.tools.get(tool)?;
        let written = places.name.document.to_json(places.tool);
        let name = Value::from(tool);
        let document = match places.written_as {
            WrittenAs::Document => written,
            WrittenAs::Body | WrittenAs::Workflow => {
                let kind = match places.written_as {
                    WrittenAs::Workflow => "Workflow",
                    _ => "Tool",
                };
                format!(
                    r#"{{"apiVersion":"{API_VERSION}","kind":"{kind}","metadata":{{"name":{name}}},"spec":{written}}}"#
                )
            }
            WrittenAs::PromptKit => format!(
                r#"{{"apiVersion":"{PROMPTKIT_VERSION}","kind":"Tool","metadata":{{"name":{name}}},"spec":{written}}}"#
            ),
        };
        RawJson::parse(document).ok()
    }

    /// Returns the settings of this server as they are written: an entry of `servers`. If a tool that it serves holds them, they
    /// offer that tool alone. `None` if there is no such server.
    #[must_use]
    pub fn server_settings(&self, server: &str) -> Option<RawJson> {
        let Place { document, at } = self.places.servers.get(server)?;
        if let Some(settings) = self.places.server_settings.get(server) {
            return RawJson::parse(document.to_json(*settings)).ok();
        }
        let entries = document.entries(*at).iter();
        let of_server = entries.filter(|(key, _)| INLINE_KEYS.contains(&key.as_str()));
        let mut members: Vec<(&str, RawJson)> = Vec::new();
        for (key, value) in of_server {
            members.push((key, RawJson::parse(document.to_json(*value)).ok()?));
        }
        members.push(("include", RawJson::parse("[]").ok()?));
        Some(RawJson::from_members(&members))
    }

    /// Returns the place of a pattern of the policy, by its setting, such as `blocklist` or `approval.required`, and
    /// its text.
    #[must_use]
    pub fn locate_rule(&self, setting: &str, pattern: &str) -> Option<Location> {
        let mut rules = self.places.rules.iter();
        let (_, place) = rules.find(|((known, text), _)| *known == setting && text == pattern)?;
        Some(place.document.location(place.at))
    }

    /// Converts a problem that an executor found in a tool's settings into a diagnostic with its place.
    #[must_use]
    pub fn diagnose(&self, tool: &str, problem: &PrepareError) -> Diagnostic {
        self.located(Diagnostic::error(problem.message.clone()), tool, problem)
    }

    /// Converts a problem with settings that an executor can use all the same into a warning with its place.
    #[must_use]
    pub fn warning(&self, tool: &str, problem: &PrepareError) -> Diagnostic {
        self.located(Diagnostic::warning(problem.message.clone()), tool, problem)
    }

    fn located(&self, diagnostic: Diagnostic, tool: &str, problem: &PrepareError) -> Diagnostic {
        let diagnostic = diagnostic.with_location(self.locate(tool, ConfigPart::Settings, &problem.pointer));
        match &problem.hint {
            Some(hint) => diagnostic.with_hint(hint.clone()),
            None => diagnostic,
        }
    }
}

impl ToolPlaces {
    pub(crate) fn settings_location(&self, pointer: &str) -> Location {
        let document = &self.name.document;
        let name = pointer
            .split('/')
            .nth(1)
            .map(|name| name.replace("~1", "/").replace("~0", "~"));
        let entry = name.and_then(|name| self.settings.entries.iter().find(|(key, _)| *key == name));
        match (entry, self.settings.root) {
            (Some((_, at)), _) => {
                let rest = pointer[1..].find('/').map_or("", |slash| &pointer[1 + slash..]);
                document.location(document.descend(*at, rest))
            }
            (None, Some(root)) => document.key_location(root),
            (None, None) => self.name.key_location(),
        }
    }
}

/// Loads files, directories and texts into one configuration, with the settings of layers that these sections read.
///
/// # Errors
/// Every problem that was found, warnings among them, if one of the named files cannot be used. A bad file in a
/// directory is no error here: it is left out and shows in [`Loaded::diagnostics`].
pub fn load(options: &LoadOptions, sections: &Sections) -> Result<Loaded, Diagnostics> {
    let mut loader = Loader {
        sections,
        report: Report::default(),
        left_out: Vec::new(),
        draft: Draft::default(),
        seen: HashSet::new(),
        files: Vec::new(),
        surroundings: Surroundings::of_process(),
    };
    if let Some(directory) = &options.working_directory {
        loader.surroundings.working_directory = Some(directory.clone());
    }
    for input in &options.inputs {
        match input {
            Input::Path(path) => loader.path(path, None),
            Input::Text { name, syntax, text } => {
                let bytes = text.clone().into_bytes();
                match SourceFile::decode(name.clone(), PathBuf::new(), *syntax, bytes) {
                    Ok(source) => loader.named(source),
                    Err(problem) => loader.report.push(problem),
                }
            }
        }
    }
    loader.finish(options)
}

struct Loader<'a> {
    sections: &'a Sections,
    report: Report,
    /// Errors of files in directories.
    left_out: Vec<Diagnostic>,
    draft: Draft,
    seen: HashSet<PathBuf>,
    files: Vec<PathBuf>,
    surroundings: Surroundings,
}

impl Loader<'_> {
    /// Takes a file or directory that is named in the options, or in the file at `by`.
    fn path(&mut self, path: &Path, by: Option<&Place>) {
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => self.directory(path, by),
            Ok(_) => {
                if self.is_new(path) {
                    match open(path) {
                        Ok(source) => self.named(source),
                        Err(problem) => self.report.push(named_at(problem, by)),
                    }
                }
            }
            Err(error) => {
                let problem = Diagnostic::error(format!("cannot read `{}`: {error}", path.display()));
                self.report.push(named_at(problem, by));
            }
        }
    }

    fn is_new(&mut self, path: &Path) -> bool {
        let is_new = self
            .seen
            .insert(path.canonicalize().unwrap_or_else(|_| path.to_owned()));
        if is_new {
            self.files.push(path.to_owned());
        }
        if is_new && self.seen.len() == MAX_FILES {
            self.report.push(Diagnostic::error(format!(
                "there are more than {MAX_FILES} files"
            )));
        }
        is_new && self.seen.len() < MAX_FILES
    }

    /// Takes a file whose problems make the whole configuration unusable.
    fn named(&mut self, source: SourceFile) {
        let mut draft = detect::read(source, &self.report, self.sections, &self.surroundings);
        let includes = std::mem::take(&mut draft.includes);
        self.draft.merge(&self.report, draft);
        for (place, path) in includes {
            self.path(&path, Some(&place));
        }
    }

    fn directory(&mut self, path: &Path, by: Option<&Place>) {
        if !self.is_new(path) {
            return;
        }
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) => {
                let problem = Diagnostic::error(format!("cannot read `{}`: {error}", path.display()));
                self.report.push(named_at(problem, by));
                return;
            }
        };
        let mut files: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|file| {
                let extension = file.extension().and_then(|extension| extension.to_str());
                extension.is_some_and(|extension| EXTENSIONS.contains(&extension)) && file.is_file()
            })
            .collect();
        files.sort();
        for file in files {
            if self.is_new(&file) {
                self.scanned(&file);
            }
        }
    }

    /// Takes a file of a directory: all of it, or nothing and its problems.
    fn scanned(&mut self, path: &Path) {
        let report = Report::default();
        let read = open(path).map(|source| detect::read(source, &report, self.sections, &self.surroundings));
        let draft = match read {
            Ok(draft) => draft,
            Err(problem) => {
                self.left_out.push(problem);
                return;
            }
        };
        let is_usable = !report.has_errors();
        self.left_out.extend(report.into_problems());
        if is_usable {
            let mut draft = draft;
            let includes = std::mem::take(&mut draft.includes);
            draft.mark_scanned();
            let report = Report::default();
            self.draft.merge(&report, draft);
            self.left_out.extend(report.into_problems());
            for (place, path) in includes {
                self.path(&path, Some(&place));
            }
        }
    }

    fn finish(self, options: &LoadOptions) -> Result<Loaded, Diagnostics> {
        let (mut draft, mut left_out) = (self.draft, self.left_out);
        left_out.extend(draft.route(&self.report));
        let mut files = self.files;
        let kinds = &options.kinds_with_files;
        left_out.extend(draft.read_files(&self.report, |tool| code_files::read(tool, kinds, &mut files)));
        left_out.extend(draft.check_sections(&self.report));
        draft.check_roles(&self.report);
        draft.check_authoring(&self.report);
        draft.check_endpoints(&self.report);
        draft.settle_servers(&self.report);
        draft.refuse_itself(&self.report, &self.seen);
        draft.check_meta_tools(&self.report);
        let has_errors = self.report.has_errors();
        let mut diagnostics = self.report.into_problems();
        diagnostics.extend(left_out);
        if has_errors {
            return Err(Diagnostics::new(diagnostics));
        }
        let (configuration, places) = draft.finish();
        let directory = options.inputs.iter().find_map(|input| match input {
            Input::Path(path) if path.is_dir() => Some(path.clone()),
            Input::Path(path) => path.parent().map(Path::to_owned),
            Input::Text { .. } => None,
        });
        Ok(Loaded {
            configuration,
            diagnostics,
            files,
            places,
            directory: directory.unwrap_or_default(),
        })
    }
}

/// Adds the place of the name to a problem with a file.
fn named_at(problem: Diagnostic, by: Option<&Place>) -> Diagnostic {
    match by {
        Some(place) if problem.location.is_none() => {
            problem.with_location(Some(place.document.location(place.at)))
        }
        _ => problem,
    }
}

pub(crate) fn open(path: &Path) -> Result<SourceFile, Diagnostic> {
    let name = path.display().to_string();
    let failed = |error: std::io::Error| Diagnostic::error(format!("cannot read `{name}`: {error}"));
    let file = fs::File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    // The size that the system reports is 0 for pipes.
    file.take(MAX_FILE_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    let directory = path.parent().map(Path::to_owned).unwrap_or_default();
    SourceFile::decode(name.clone(), directory, Syntax::from_path(path), bytes)
}
