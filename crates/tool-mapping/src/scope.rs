//! Values that references and expressions see.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use parking_lot::Mutex;
use raw_json::RawJson;

use super::reference::ReferenceRoot;

/// Results of the steps of a scope, and of those around it.
#[derive(Debug, Default)]
pub struct Results<'a> {
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
    #[must_use]
    pub fn within(outer: &'a Self) -> Self {
        Self {
            own: Mutex::default(),
            outer: Some(outer),
        }
    }

    /// Returns the results of the scope around this one.
    #[must_use]
    pub fn outer(&self) -> Option<&'a Self> {
        self.outer
    }

    /// Records the result of a step.
    pub fn put(&self, step: Arc<str>, result: RawJson) {
        self.own.lock().values.insert(step, result);
    }

    /// Records that a step has failed.
    pub fn put_failed(&self, step: Arc<str>) {
        self.own.lock().failed.insert(step);
    }

    /// Returns the result of a step, if it has one.
    #[must_use]
    pub fn get(&self, step: &str) -> Option<RawJson> {
        let own = self.own.lock().values.get(step).cloned();
        own.or_else(|| self.outer?.get(step))
    }

    /// Returns `true` if a step of this scope has failed.
    #[must_use]
    pub fn has_failed(&self, step: &str) -> bool {
        self.own.lock().failed.contains(step)
    }

    /// Returns the results of this scope, by the names of the steps.
    #[must_use]
    pub fn to_json(&self) -> RawJson {
        let own = self.own.lock();
        let members: Vec<_> = own
            .values
            .iter()
            .map(|(step, result)| (&**step, result.clone()))
            .collect();
        RawJson::from_members(&members)
    }
}

/// Values at one place: the input, the results of the steps before it, and the variables of the loops around it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct MappingValues<'a> {
    /// Input.
    pub input: &'a RawJson,
    /// Results of steps.
    pub results: &'a Results<'a>,
    /// Variables of loops, the outermost first.
    pub variables: &'a [(Arc<str>, RawJson)],
    /// `true` if a missing result is null, as in the output of a workflow that goes on after errors.
    pub missing_is_null: bool,
}

impl<'a> MappingValues<'a> {
    /// Creates the values of a place outside of loops. A missing result is an error.
    #[must_use]
    pub fn new(input: &'a RawJson, results: &'a Results<'a>) -> Self {
        Self {
            input,
            results,
            variables: &[],
            missing_is_null: false,
        }
    }

    /// Sets the variables of the loops around the place, the outermost first.
    #[must_use]
    pub fn with_variables(mut self, variables: &'a [(Arc<str>, RawJson)]) -> Self {
        self.variables = variables;
        self
    }

    /// Sets whether a missing result is null.
    #[must_use]
    pub fn with_missing_as_null(mut self, missing_is_null: bool) -> Self {
        self.missing_is_null = missing_is_null;
        self
    }

    /// Returns the value of a root.
    ///
    /// # Errors
    /// Continues a sentence about the reference.
    pub fn root(&self, root: &ReferenceRoot) -> Result<RawJson, String> {
        match root {
            ReferenceRoot::Input => Ok(self.input.clone()),
            ReferenceRoot::Result(step) => match self.results.get(step) {
                Some(result) => Ok(result),
                None => Err(format!("is not there: the step `{step}` has no result")),
            },
            ReferenceRoot::Variable(name) => {
                let mut inner_first = self.variables.iter().rev();
                let found = inner_first.find(|(known, _)| known == name);
                let value = found.map(|(_, value)| value.clone());
                value.ok_or_else(|| format!("is not there: no loop has the variable `{name}`"))
            }
        }
    }

    /// Returns `true` if a reference to this root is null, since the step has no result.
    #[must_use]
    pub fn is_null(&self, root: &ReferenceRoot) -> bool {
        self.missing_is_null
            && matches!(root, ReferenceRoot::Result(step) if self.results.get(step).is_none())
    }
}
