//! Look-alikes: names that people take for one another (UTS #39, confusables).

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::BuildHasher,
};

use foldhash::fast::RandomState;
use tool_core::{Descriptor, Feature, ListWarning, outward_name};
use tool_scan::{escape_line, name_skeleton};

/// Maximum number of warnings.
const MAX_WARNINGS: usize = 1000;

/// Hashes of names by their looks, with one key.
#[derive(Default)]
pub(crate) struct Looks(RandomState);

/// Hashes of the forms of one name: as agents see it and, if letters were replaced, as the server wrote it.
pub(crate) struct Look([Option<u64>; 2]);

impl Looks {
    pub(crate) fn of(&self, descriptor: &Descriptor) -> Look {
        let outward = name_skeleton(&descriptor.name);
        let original = original(descriptor).map(|name| name_skeleton(&name));
        Look([Some(outward), original].map(|form| form.map(|form| self.0.hash_one(form))))
    }
}

/// Returns a warning for each tool or prompt whose name looks like that of an earlier one, with the source of the later one.
pub(crate) fn look_alikes(offered: Vec<(&str, &Descriptor, Look)>) -> Vec<(String, ListWarning)> {
    let mut known: HashMap<(Feature, u64), (&str, &Descriptor), RandomState> = HashMap::default();
    known.reserve(offered.len());
    let mut warnings = Vec::new();
    for (source, descriptor, Look(forms)) in offered {
        let mut is_warned = false;
        for form in forms.into_iter().flatten() {
            match known.entry((descriptor.feature, form)) {
                Entry::Vacant(vacant) => {
                    vacant.insert((source, descriptor));
                }
                Entry::Occupied(first) => {
                    let (owner, first) = *first.get();
                    if first.name != descriptor.name && !is_warned && warnings.len() < MAX_WARNINGS {
                        is_warned = true;
                        warnings.push((source.to_owned(), warning(descriptor, first, owner)));
                    }
                }
            }
        }
    }
    warnings
}

fn warning(descriptor: &Descriptor, first: &Descriptor, owner: &str) -> ListWarning {
    let name = &first.name;
    ListWarning::new(
        Some(descriptor.feature),
        Some(escape_line(&descriptor.name).into_owned()),
        "look_alike_name",
        format!(
            "its name looks like `{}` of `{}`",
            escape_line(name),
            escape_line(owner)
        ),
    )
}

/// Returns the prefix and the name as the server wrote it, if it has letters that agents do not see.
fn original(descriptor: &Descriptor) -> Option<String> {
    let own = descriptor.definition.as_ref()?.as_part().get("name")?.text()?;
    if own.is_ascii() {
        return None;
    }
    let prefix = descriptor.name.strip_suffix(&outward_name(&own))?;
    Some(format!("{prefix}{own}"))
}
