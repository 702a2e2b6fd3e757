//! From descriptors to a snapshot.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use tool_core::{Catalogue, Descriptor, Executor, Settings, Tool, ToolParts, ToolState, check_name};
use tool_schema::LazySchema;

use crate::{Refused, Snapshot};

/// What a resolution goes by.
pub(crate) struct Resolver<'a> {
    pub(crate) executors: &'a HashMap<String, Arc<dyn Executor>>,
    pub(crate) defaults: Settings,
    /// The snapshot before: its tools are kept where nothing changed, and their state always.
    pub(crate) before: &'a Snapshot,
}

impl Resolver<'_> {
    /// Resolves all sources. Where two have a tool of the same name, the first one has it and the second is refused.
    pub(crate) fn resolve(&self, sources: &[(&str, Arc<Catalogue>)]) -> Snapshot {
        let mut snapshot = Snapshot {
            revision: self.before.revision + 1,
            seen: sources.iter().map(|(_, catalogue)| catalogue.revision).collect(),
            ..Snapshot::default()
        };
        let mut owners: HashMap<Arc<str>, &str> = HashMap::new();
        for (source, catalogue) in sources {
            let refuse = |name: &str, reason: String| Refused {
                source: (*source).to_owned(),
                name: name.to_owned(),
                reason,
                problems: Vec::new(),
            };
            snapshot.refused.extend(
                catalogue
                    .rejected
                    .iter()
                    .map(|r| refuse(&r.name, r.reason.clone())),
            );
            for descriptor in &catalogue.tools {
                match owners.entry(descriptor.name.clone()) {
                    Entry::Occupied(owner) => {
                        let reason = format!(
                            "`{}` is already a tool of `{}`; rename one of them or give its server a prefix",
                            descriptor.name,
                            owner.get()
                        );
                        snapshot.refused.push(refuse(&descriptor.name, reason));
                    }
                    Entry::Vacant(vacant) => match self.tool(source, descriptor) {
                        Ok(tool) => {
                            vacant.insert(source);
                            snapshot.by_name.insert(tool.name().clone(), tool.clone());
                            snapshot.tools.push(tool);
                        }
                        Err(refused) => snapshot.refused.push(refused),
                    },
                }
            }
        }
        snapshot.tools.sort_by(|a, b| a.name().cmp(b.name()));
        snapshot
    }

    fn tool(&self, source: &str, descriptor: &Arc<Descriptor>) -> Result<Arc<Tool>, Refused> {
        let before = self.before.get(&descriptor.name);
        if let Some(tool) = before.filter(|tool| Arc::ptr_eq(tool.descriptor(), descriptor)) {
            return Ok(tool.clone());
        }
        let refused = |reason: String, problems| Refused {
            source: source.to_owned(),
            name: descriptor.name.to_string(),
            reason,
            problems,
        };
        check_name(&descriptor.name).map_err(|error| refused(error.to_string(), Vec::new()))?;
        let kind = &descriptor.executor.kind;
        let executor = self.executors.get(kind).ok_or_else(|| {
            let mut kinds: Vec<_> = self.executors.keys().map(|kind| format!("`{kind}`")).collect();
            kinds.sort();
            refused(
                format!(
                    "there is no executor `{kind}` here; there are {}",
                    kinds.join(", ")
                ),
                Vec::new(),
            )
        })?;
        let prepared = executor.prepare(descriptor).map_err(|problems| {
            let reasons: Vec<_> = problems.iter().map(ToString::to_string).collect();
            refused(reasons.join("; "), problems)
        })?;
        Ok(Arc::new(Tool::new(ToolParts {
            descriptor: descriptor.clone(),
            input: Arc::new(LazySchema::new(descriptor.input_schema.clone())),
            output: descriptor
                .output_schema
                .clone()
                .map(|schema| Arc::new(LazySchema::new(schema)) as _),
            executor: prepared,
            state: before.map_or_else(|| Arc::new(ToolState::default()), |tool| tool.state().clone()),
            settings: self.settings(descriptor),
        })))
    }

    /// A tool's own limit wins over the defaults, also where it is longer than a whole call would be.
    fn settings(&self, descriptor: &Descriptor) -> Settings {
        let mut settings = self.defaults;
        if let Some(timeout) = descriptor.timeout {
            settings.attempt_timeout = timeout;
            settings.call_timeout = settings.call_timeout.max(timeout);
        }
        settings
    }
}
