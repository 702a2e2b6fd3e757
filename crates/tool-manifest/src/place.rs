use std::sync::Arc;

use crate::{
    Diagnostic, Location,
    node::{Document, NodeId},
    read::Reading,
    report::Report,
};

/// Where something was defined, kept after its file was read.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) document: Arc<Document>,
    pub(crate) at: NodeId,
}

impl Place {
    pub(crate) fn key_location(&self) -> Location {
        self.document.key_location(self.at)
    }

    /// File and line, for origins.
    pub(crate) fn origin(&self) -> tool_core::Origin {
        let line = self.document.key_line(self.at);
        tool_core::Origin {
            place: format!("{}:{line}", self.document.source.name),
            trust: tool_core::Trust::Operator,
        }
    }
}

/// A document on its way to the model, with the words to say what is wrong in it.
#[derive(Clone, Copy)]
pub(crate) struct Cx<'a> {
    pub(crate) document: &'a Arc<Document>,
    pub(crate) report: &'a Report,
    pub(crate) lenient: bool,
}

impl<'a> Cx<'a> {
    pub(crate) fn reading(self) -> Reading<'a> {
        Reading {
            document: self.document,
            report: self.report,
            lenient: self.lenient,
        }
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
