use raw_json::RawJson;

/// Identifies a value of a document, and thereby its place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NodeId(u32);

impl NodeId {
    /// Creates the id of the value with this index.
    #[must_use]
    pub const fn new(index: u32) -> Self {
        Self(index)
    }

    /// Returns the index of the value in the document.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.0
    }
}

/// A value of a document, as written in the file.
#[derive(Debug, Clone, Copy)]
pub enum ConfigValue<'a> {
    /// `null`, or no value.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number, in JSON syntax.
    Number(&'a str),
    /// A string.
    String(&'a str),
    /// A list.
    List(&'a [NodeId]),
    /// A map, in the order of the file; keys are unique.
    Map(&'a [(String, NodeId)]),
}

/// A problem with one value of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigProblem {
    /// The value that has the problem.
    pub at: NodeId,
    /// `true` if the value's key is shown instead of the value.
    pub shows_key: bool,
    /// `true` if the configuration can still be used.
    pub is_warning: bool,
    /// Lower-case fragment that names the broken rule.
    pub message: String,
    /// Hint on how to fix the problem; empty if there is none.
    pub hint: String,
}

impl ConfigProblem {
    /// Creates an error of a value. The hint may be empty.
    #[must_use]
    pub fn new(at: NodeId, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            at,
            shows_key: false,
            is_warning: false,
            message: message.into(),
            hint: hint.into(),
        }
    }

    /// Shows the value's key instead of the value.
    #[must_use]
    pub fn on_key(self) -> Self {
        Self {
            shows_key: true,
            ..self
        }
    }

    /// Makes it a warning if `is_warning` is `true`: the configuration can still be used.
    #[must_use]
    pub fn with_warning(self, is_warning: bool) -> Self {
        Self { is_warning, ..self }
    }
}

/// A document from which sections are read: its values with their places, and the report of problems.
///
/// `tool-manifest` implements it for YAML and JSON.
pub trait ConfigDocument {
    /// Returns the value itself.
    fn value(&self, at: NodeId) -> ConfigValue<'_>;

    /// Returns a scalar's text as it is written in the file; `None` for lists, maps and null.
    fn verbatim(&self, at: NodeId) -> Option<&str>;

    /// Describes a value for "expected .., found ..", without the content of a string, which may be secret.
    fn describe(&self, at: NodeId) -> String;

    /// Writes a value as JSON, numbers with all their digits.
    fn to_json(&self, at: NodeId) -> String;

    /// Returns the keys of the sections at this anchor of a map; `None` if the name is no anchor.
    fn section_keys(&self, anchor: &str) -> Option<&[SectionKey]>;

    /// Handles the unknown keys of a map. Returns those that are read as a known key instead, so that all of their
    /// problems are reported in the same run.
    fn unknown_keys(&self, map: NodeId, known: &[&'static str]) -> Vec<(&'static str, NodeId)>;

    /// Adds a problem to the report.
    fn report(&self, problem: ConfigProblem);
}

/// A key of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SectionKey {
    /// Spelling in a file.
    pub name: &'static str,
    /// Key that the spelling stands for: itself, or the canonical key.
    pub key: &'static str,
}

/// Reports the problems of a section at their places in the document.
#[derive(Clone, Copy)]
pub struct SectionContext<'a> {
    document: &'a dyn ConfigDocument,
}

impl<'a> SectionContext<'a> {
    /// Creates a context that reports to this document.
    #[must_use]
    pub fn new(document: &'a dyn ConfigDocument) -> Self {
        Self { document }
    }

    /// Reports that a value is invalid.
    pub fn error(self, at: NodeId, message: impl Into<String>, hint: impl Into<String>) {
        self.document.report(ConfigProblem::new(at, message, hint));
    }

    /// Reports that an entry is invalid. The report shows its key.
    pub fn key_error(self, at: NodeId, message: impl Into<String>, hint: impl Into<String>) {
        self.document
            .report(ConfigProblem::new(at, message, hint).on_key());
    }

    /// Reports that an entry is probably a mistake. The report shows its key.
    pub fn warning(self, at: NodeId, message: impl Into<String>, hint: impl Into<String>) {
        let problem = ConfigProblem::new(at, message, hint);
        self.document.report(problem.on_key().with_warning(true));
    }

    /// Returns a value as JSON. Returns `None`, and reports it, if the value has no JSON form.
    #[must_use]
    pub fn json(self, at: NodeId) -> Option<RawJson> {
        match RawJson::parse(self.document.to_json(at)) {
            Ok(json) => Some(json),
            Err(problem) => {
                self.error(at, format!("this cannot be written as JSON: {problem}"), "");
                None
            }
        }
    }
}

impl std::fmt::Debug for SectionContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SectionContext").finish_non_exhaustive()
    }
}
