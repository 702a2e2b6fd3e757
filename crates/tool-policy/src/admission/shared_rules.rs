use std::{fmt, sync::Arc};

use arc_swap::ArcSwap;

use super::{DisabledByOperator, Rules};

/// Rules that can be replaced while calls run. Clones share them.
#[derive(Clone)]
pub struct SharedRules(Arc<ArcSwap<Rules>>);

impl SharedRules {
    /// Shares these rules.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(rules)))
    }

    /// Returns the current rules.
    #[must_use]
    pub fn load(&self) -> impl std::ops::Deref<Target = Arc<Rules>> + use<> {
        self.0.load()
    }

    /// Replaces the rules, except for the list of tools that operators disabled. Calls that were admitted go on.
    pub fn store(&self, rules: &Rules) {
        self.0.rcu(|current| Rules {
            disabled: current.disabled.clone(),
            ..rules.clone()
        });
    }

    /// Disables a tool on behalf of an operator. If it is disabled already, this replaces the reason.
    pub fn disable(&self, tool: &str, disabled: &DisabledByOperator) {
        self.0.rcu(|current| {
            let mut rules = Rules::clone(current);
            rules.disabled.insert(tool.to_owned(), disabled.clone());
            rules
        });
    }

    /// Enables a tool that an operator disabled. Returns `false` if it was not disabled.
    #[must_use = "it says whether the tool was disabled before"]
    pub fn enable(&self, tool: &str) -> bool {
        let before = self.0.rcu(|current| {
            let mut rules = Rules::clone(current);
            rules.disabled.remove(tool);
            rules
        });
        before.disabled.contains_key(tool)
    }
}

impl From<Rules> for SharedRules {
    fn from(rules: Rules) -> Self {
        Self::new(rules)
    }
}

impl From<Arc<Rules>> for SharedRules {
    fn from(rules: Arc<Rules>) -> Self {
        Self(Arc::new(ArcSwap::new(rules)))
    }
}

impl fmt::Debug for SharedRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedRules").field(&**self.load()).finish()
    }
}
