//! Values that references and expressions see.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use parking_lot::Mutex;
use raw_json::RawJson;

use super::reference::Root;

/// Results of the steps of a scope, and of those around it.
#[derive(Debug, Default)]
pub(crate) struct Results<'a> {
    own: Mutex<OwnResults>,
    outer: Option<&'a Self>,
}

#[derive(Debug, Default)]
struct OwnResults {
    values: BTreeMap<Arc<str>, RawJson>,
    /// Steps that ended without a result, other than those of a branch that was not taken.
    failed: BTreeSet<Arc<str>>,
}

impl<'a> Results<'a> {
    /// Creates the results of a scope inside of another.
    pub(crate) fn within(outer: &'a Self) -> Self {
        Self {
            own: Mutex::default(),
            outer: Some(outer),
        }
    }

    /// Returns the results of the scope around this one.
    pub(crate) fn outer(&self) -> Option<&'a Self> {
        self.outer
    }

    /// Records the result of a step.
    pub(crate) fn put(&self, step: Arc<str>, result: RawJson) {
        self.own.lock().values.insert(step, result);
    }

    /// Records that a step has failed.
    pub(crate) fn put_failed(&self, step: Arc<str>) {
        self.own.lock().failed.insert(step);
    }

    /// Returns the result of a step, if it has one.
    pub(crate) fn get(&self, step: &str) -> Option<RawJson> {
        let own = self.own.lock().values.get(step).cloned();
        own.or_else(|| self.outer?.get(step))
    }

    /// Returns `true` if a step of this scope has failed.
    pub(crate) fn has_failed(&self, step: &str) -> bool {
        self.own.lock().failed.contains(step)
    }

    /// Returns the results of this scope, by the names of the steps.
    pub(crate) fn to_json(&self) -> RawJson {
        let own = self.own.lock();
        let members: Vec<_> = own
            .values
            .iter()
            .map(|(step, result)| (&**step, result.clone()))
            .collect();
        RawJson::from_members(&members)
    }
}

/// Values at one place of a running workflow: the input, the results of the steps before it, and the variables of the loops
/// around it.
pub(crate) struct Values<'a> {
    pub(crate) input: &'a RawJson,
    pub(crate) results: &'a Results<'a>,
    pub(crate) variables: &'a [(Arc<str>, RawJson)],
    /// `true` if a missing result is null, as in the output of a workflow that goes on after errors.
    pub(crate) missing_is_null: bool,
}

impl Values<'_> {
    /// Returns the value of a root. The error continues a sentence about the reference.
    pub(crate) fn root(&self, root: &Root) -> Result<RawJson, String> {
        match root {
            Root::Input => Ok(self.input.clone()),
            Root::Result(step) => match self.results.get(step) {
                Some(result) => Ok(result),
                None => Err(format!("is not there: the step `{step}` has no result")),
            },
            Root::Variable(name) => {
                let mut inner_first = self.variables.iter().rev();
                let found = inner_first.find(|(known, _)| known == name);
                let value = found.map(|(_, value)| value.clone());
                value.ok_or_else(|| format!("is not there: no loop has the variable `{name}`"))
            }
        }
    }

    /// Returns `true` if a reference to this root is null, since the step has no result.
    pub(crate) fn is_null(&self, root: &Root) -> bool {
        self.missing_is_null && matches!(root, Root::Result(step) if self.results.get(step).is_none())
    }
}
