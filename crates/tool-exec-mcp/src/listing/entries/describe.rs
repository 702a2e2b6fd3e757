//! Conversion of a server's lists into descriptors.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use mcp_client::ServerInfo;
use raw_json::RawJson;
use tool_core::{Catalogue, Descriptor, Feature, ListWarning, RejectedEntry};

use super::{
    definition_policy::apply_policy, definition_warnings::definition_warnings, list_entry::ListEntry,
};
use crate::ServerSettings;

/// Result of describing a list.
#[derive(Default)]
pub(crate) struct DescribedList {
    /// Entries that can be used.
    descriptors: Vec<Arc<Descriptor>>,
    /// Entries that cannot be used, with the reason.
    rejected: Vec<RejectedEntry>,
    /// Warnings about entries, and about the list as it was read.
    pub(crate) warnings: Vec<ListWarning>,
}

/// Makes descriptors of the entries of a list. Entries that cannot be used are rejected with the reason.
pub(crate) fn describe(
    settings: &ServerSettings,
    server: &ServerInfo,
    feature: Feature,
    list: &[RawJson],
) -> DescribedList {
    let mut names = HashSet::with_capacity(list.len());
    let mut described = DescribedList::default();
    described.descriptors.reserve(list.len());
    let (descriptors, rejected) = (&mut described.descriptors, &mut described.rejected);
    for definition in list {
        let entry = ListEntry::new(settings, server, feature, definition);
        let verdict = match apply_policy(&entry, settings) {
            Ok(verdict) => verdict,
            Err(reject) => {
                rejected.push(reject);
                continue;
            }
        };
        let entry = match &verdict.definition {
            Some(cleaned) => ListEntry::new(settings, server, feature, cleaned),
            None => entry,
        };
        described.warnings.extend(verdict.warning);
        let descriptor = match entry.descriptor() {
            Ok(None) => continue,
            Ok(Some(descriptor)) => descriptor,
            Err(reject) => {
                rejected.push(reject);
                continue;
            }
        };
        if names.insert(descriptor.name.clone()) {
            described
                .warnings
                .extend(definition_warnings(&entry, &descriptor));
            descriptors.push(Arc::new(descriptor));
        } else {
            let what = if descriptor.uri.is_some() { "URI" } else { "name" };
            let reason = format!("another {} of the server has this {what}", feature.as_str());
            rejected.push(entry.reject(descriptor.name.to_string(), &reason));
        }
    }
    described
}

/// Returns the catalogue with these lists replaced and the others kept. Descriptors that did not change stay the same
/// objects, so that their tools are not resolved again.
pub(crate) fn replace_lists(before: &Catalogue, mut lists: HashMap<Feature, DescribedList>) -> Catalogue {
    let previous: HashMap<_, _> = before
        .tools
        .iter()
        .chain(&before.others)
        .map(|descriptor| ((descriptor.feature, &descriptor.name), descriptor))
        .collect();
    let mut after = Catalogue::default();
    after.revision = before.revision + 1;
    for &feature in Feature::ALL {
        let described = lists
            .remove(&feature)
            .unwrap_or_else(|| list_of_catalogue(before, feature));
        let list = match feature {
            Feature::Tool => &mut after.tools,
            _ => &mut after.others,
        };
        list.extend(described.descriptors.into_iter().map(|descriptor| {
            match previous.get(&(feature, &descriptor.name)) {
                Some(same) if ***same == *descriptor => Arc::clone(same),
                _ => descriptor,
            }
        }));
        after.rejected.extend(described.rejected);
        after.warnings.extend(described.warnings);
    }
    after
}

fn list_of_catalogue(catalogue: &Catalogue, feature: Feature) -> DescribedList {
    let descriptors = catalogue.tools.iter().chain(&catalogue.others);
    let rejected = catalogue.rejected.iter();
    let warnings = catalogue.warnings.iter();
    DescribedList {
        descriptors: descriptors
            .filter(|descriptor| descriptor.feature == feature)
            .cloned()
            .collect(),
        rejected: rejected
            .filter(|rejected| rejected.feature == feature)
            .cloned()
            .collect(),
        warnings: warnings
            .filter(|warning| warning.feature == Some(feature))
            .cloned()
            .collect(),
    }
}
