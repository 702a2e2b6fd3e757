//! The list of an endpoint as a catalogue.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use raw_json::RawJson;
use tool_core::{Catalogue, Descriptor, Feature, ListWarning, RejectedEntry};
use tracing::warn;

use crate::{EndpointSettings, definition::describe as describe_entry};

/// Maximum number of warnings that are logged for one list.
const MAX_LOGGED: usize = 20;

/// Descriptors of a list, and the entries that are not offered.
#[derive(Debug, Default)]
pub(crate) struct DescribedList {
    descriptors: Vec<Descriptor>,
    rejected: Vec<RejectedEntry>,
    warnings: Vec<ListWarning>,
}

/// Makes descriptors of the entries of a list.
pub(crate) fn describe(settings: &EndpointSettings, entries: Vec<RawJson>) -> DescribedList {
    let mut list = DescribedList::default();
    let limit = settings.list_limits.tools;
    if entries.len() > limit {
        let message = format!(
            "{} of its {} tools are left out: at most {limit} are allowed",
            entries.len() - limit,
            entries.len()
        );
        list.warnings
            .push(ListWarning::new(Some(Feature::Tool), None, "list_cut", message));
    }
    let mut names = HashSet::new();
    for entry in entries.into_iter().take(limit) {
        let reject = |name, reason| RejectedEntry::new(Feature::Tool, name, reason);
        match describe_entry(settings, &entry) {
            Ok(None) => {}
            Ok(Some(described)) if names.insert(described.descriptor.name.clone()) => {
                list.descriptors.push(described.descriptor);
                list.warnings.extend(described.warnings);
            }
            Ok(Some(described)) => {
                let reason = "another tool of the endpoint has this name".to_owned();
                list.rejected
                    .push(reject(described.descriptor.name.to_string(), reason));
            }
            Err((name, reason)) => list.rejected.push(reject(name, reason)),
        }
    }
    list
}

/// Returns the catalogue with this list. Descriptors that did not change stay the same objects, so that their tools are not
/// resolved again. Returns `None` if nothing changed.
pub(crate) fn replace(before: &Catalogue, list: DescribedList) -> Option<Catalogue> {
    let known: HashMap<_, _> = before.tools.iter().map(|tool| (&tool.name, tool)).collect();
    let tools = list
        .descriptors
        .into_iter()
        .map(|descriptor| match known.get(&descriptor.name) {
            Some(same) if ***same == descriptor => Arc::clone(same),
            _ => Arc::new(descriptor),
        });
    let mut after = Catalogue::new(before.revision + 1, tools.collect());
    after.rejected = list.rejected;
    after.warnings = list.warnings;
    let is_same = before.revision > 0
        && before.tools == after.tools
        && before.rejected == after.rejected
        && before.warnings == after.warnings;
    (!is_same).then_some(after)
}

/// Logs what operators should know about a list.
pub(crate) fn log_warnings(endpoint: &str, catalogue: &Catalogue) {
    let rejected = catalogue.rejected.iter();
    let rejected = rejected.map(|entry| format!("tool `{}` is not offered: {}", entry.name, entry.reason));
    let warnings = catalogue.warnings.iter().map(ToString::to_string);
    for text in rejected.chain(warnings).take(MAX_LOGGED) {
        warn!(endpoint, "{text}");
    }
}
