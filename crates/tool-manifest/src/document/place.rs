use std::sync::Arc;

use serde::Deserialize;
use tool_settings::{
    ConfigDocument, ConfigProblem, ConfigValue, NodeId, SectionContext, SectionKey, Sections,
};

use crate::{
    Diagnostic, Location,
    diagnostics::report::Report,
    document::{
        node::{Document, Kind},
        unknown_keys,
    },
};

/// Place of a definition, kept after its file was read.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) document: Arc<Document>,
    pub(crate) at: NodeId,
}

impl Place {
    pub(crate) fn key_location(&self) -> Location {
        self.document.key_location(self.at)
    }

    /// Returns file and line, for origins.
    pub(crate) fn origin(&self) -> tool_core::Origin {
        let line = self.document.key_line(self.at);
        tool_core::Origin::operator(format!("{}:{line}", self.document.source.name))
    }
}

/// A document that is being read, with everything that is needed to report problems in it.
#[derive(Clone, Copy)]
pub(crate) struct Cx<'a> {
    pub(crate) document: &'a Arc<Document>,
    pub(crate) report: &'a Report,
    /// Sections of layers.
    pub(crate) sections: &'a Sections,
    /// `true` if unknown keys are only warned of: in files that are written for other programs.
    pub(crate) lenient: bool,
}

impl<'a> Cx<'a> {
    /// Reads a value as a file type. Wrong values are reported; returns `None` only if the value as a whole is not what is
    /// expected.
    pub(crate) fn read<T: for<'de> Deserialize<'de>>(self, at: NodeId) -> Option<T> {
        tool_settings::read(&self, at)
    }

    /// Returns the context for the checks that all sections share.
    pub(crate) fn words(&self) -> SectionContext<'_> {
        SectionContext::new(self)
    }

    pub(crate) fn place(self, at: NodeId) -> Place {
        Place {
            document: self.document.clone(),
            at,
        }
    }

    /// Reports that a value is wrong.
    pub(crate) fn error(self, at: NodeId, message: impl Into<String>, hint: impl Into<String>) {
        if self.report.is_full() {
            return;
        }
        let location = self.document.location(at);
        self.push(Diagnostic::error(message), location, hint.into());
    }

    /// Returns `true` for a map, and reports anything else.
    pub(crate) fn expect_map(self, at: NodeId, hint: &str) -> bool {
        let is_map = matches!(self.document.kind(at), Kind::Map(_));
        if !is_map {
            let found = self.document.describe(at);
            self.error(at, format!("expected a map, found {found}"), hint);
        }
        is_map
    }

    /// Reports that an entry is wrong: its key is shown.
    pub(crate) fn key_error(self, at: NodeId, message: impl Into<String>, hint: impl Into<String>) {
        if self.report.is_full() {
            return;
        }
        let location = self.document.key_location(at);
        self.push(Diagnostic::error(message), location, hint.into());
    }

    /// Reports that an entry may not be what was meant.
    pub(crate) fn warning(self, at: NodeId, message: impl Into<String>, hint: impl Into<String>) {
        if self.report.is_full() {
            return;
        }
        let location = self.document.key_location(at);
        self.push(Diagnostic::warning(message), location, hint.into());
    }

    fn push(self, problem: Diagnostic, location: Location, hint: String) {
        let problem = problem.with_location(Some(location));
        self.report.push(if hint.is_empty() {
            problem
        } else {
            problem.with_hint(hint)
        });
    }
}

impl ConfigDocument for Cx<'_> {
    fn value(&self, at: NodeId) -> ConfigValue<'_> {
        self.document.value(at)
    }

    fn verbatim(&self, at: NodeId) -> Option<&str> {
        self.document.verbatim(at)
    }

    fn describe(&self, at: NodeId) -> String {
        self.document.describe(at)
    }

    fn to_json(&self, at: NodeId) -> String {
        self.document.to_json(at)
    }

    fn section_keys(&self, anchor: &str) -> Option<&[SectionKey]> {
        self.sections.keys(anchor)
    }

    fn unknown_keys(&self, map: NodeId, known: &[&'static str]) -> Vec<(&'static str, NodeId)> {
        unknown_keys::report(*self, map, known)
    }

    fn report(&self, problem: ConfigProblem) {
        if !self.report.is_full() {
            self.report.push(diagnostic(self.document, problem));
        }
    }
}

/// Converts a problem of a section into a diagnostic with its place.
pub(crate) fn diagnostic(document: &Document, problem: ConfigProblem) -> Diagnostic {
    let location = if problem.shows_key {
        document.key_location(problem.at)
    } else {
        document.location(problem.at)
    };
    let diagnostic = if problem.is_warning {
        Diagnostic::warning(problem.message)
    } else {
        Diagnostic::error(problem.message)
    };
    let diagnostic = diagnostic.with_location(Some(location));
    if problem.hint.is_empty() {
        diagnostic
    } else {
        diagnostic.with_hint(problem.hint)
    }
}
