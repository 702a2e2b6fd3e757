//! Checks of sections that need the whole configuration.

use std::{cell::RefCell, collections::BTreeSet};

use raw_json::RawJson;
use tool_core::{Descriptor, Overrides, outward_name};
use tool_schema::Schema;
use tool_settings::{ConfigProblem, ConfiguredTool};

use crate::{
    Defaults, Diagnostic, EndpointSpec, ServerSpec, Severity, document::place, tools::tool::ToolDraft,
};

/// The other parts of the configuration, for checks of one tool.
pub(crate) struct Others<'a> {
    pub(crate) names: BTreeSet<&'a str>,
    pub(crate) servers: Vec<&'a ServerSpec>,
    pub(crate) endpoints: Vec<&'a EndpointSpec>,
    pub(crate) defaults: &'a Defaults,
    /// `true` if the configuration has embeddings.
    pub(crate) embeds_texts: bool,
}

impl Others<'_> {
    /// Makes the checks of a tool. Returns errors and warnings.
    pub(crate) fn check(&self, tool: &ToolDraft) -> (Vec<Diagnostic>, Vec<Diagnostic>) {
        let checked = Checked {
            tool,
            others: self,
            problems: RefCell::default(),
        };
        for check in &tool.checks {
            check.run(&checked);
        }
        let problems = checked.problems.into_inner().into_iter();
        problems.partition(|problem| problem.severity == Severity::Error)
    }

    /// Returns `true` if there may be a tool of this name: the tools of a server are not known before it is started, nor are
    /// those of an endpoint.
    fn may_have(&self, name: &str) -> bool {
        // A prefix as long as a name may be is cut with the name.
        let begins =
            |prefix: &str| prefix.is_empty() || prefix.len() > 55 || name.starts_with(&*outward_name(prefix));
        let may_hold = |server: &&ServerSpec| {
            let prefix = server.prefix();
            let mut renamed = server.rename.values();
            renamed.any(|new| outward_name(&format!("{prefix}{new}")) == name) || begins(&prefix)
        };
        let may_list = |endpoint: &&EndpointSpec| begins(&endpoint.prefix());
        self.names.contains(name) || self.servers.iter().any(may_hold) || self.endpoints.iter().any(may_list)
    }
}

struct Checked<'a> {
    tool: &'a ToolDraft,
    others: &'a Others<'a>,
    problems: RefCell<Vec<Diagnostic>>,
}

impl ConfiguredTool for Checked<'_> {
    fn descriptor(&self) -> &Descriptor {
        &self.tool.descriptor
    }

    fn may_exist(&self, name: &str) -> bool {
        self.others.may_have(name)
    }

    fn names(&self) -> Vec<&str> {
        self.others.names.iter().copied().collect()
    }

    fn defaults(&self) -> &Overrides {
        &self.others.defaults.overrides
    }

    fn servers(&self) -> Vec<&Overrides> {
        let servers = self.others.servers.iter().map(|server| &server.overrides);
        let endpoints = self.others.endpoints.iter();
        servers
            .chain(endpoints.map(|endpoint| &endpoint.overrides))
            .collect()
    }

    fn embeds_texts(&self) -> bool {
        self.others.embeds_texts
    }

    fn output_mismatch(&self, value: &RawJson) -> Option<String> {
        let schema = Schema::compile(self.tool.descriptor.output_schema.as_ref()?).ok()?;
        let checked = value.to().map(|value| schema.check(&value));
        match checked {
            Ok(Ok(())) => None,
            Ok(Err(mismatch)) => Some(mismatch.to_string()),
            Err(error) => Some(error.to_string()),
        }
    }

    fn report(&self, problem: ConfigProblem) {
        let document = &self.tool.places.name.document;
        self.problems
            .borrow_mut()
            .push(place::diagnostic(document, problem));
    }
}
