use std::{fmt, sync::Arc};

use arc_swap::ArcSwap;

use super::{Rules, SwitchedOff};

/// Rules that can be put in the place of others while calls are made. Clones share them.
#[derive(Clone)]
pub struct SharedRules(Arc<ArcSwap<Rules>>);

impl SharedRules {
    /// Begins with these.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(rules)))
    }

    /// The rules that hold now.
    #[must_use]
    pub fn load(&self) -> impl std::ops::Deref<Target = Arc<Rules>> + use<> {
        self.0.load()
    }

    /// Puts others in their place, but for what operators switched off by hand. A call that was admitted stays so.
    pub fn store(&self, rules: &Rules) {
        self.0.rcu(|present| Rules {
            switched_off: present.switched_off.clone(),
            ..rules.clone()
        });
    }

    /// Switches a tool off by hand, and replaces the reason of one that is off already.
    pub fn switch_off(&self, tool: &str, off: &SwitchedOff) {
        self.0.rcu(|present| {
            let mut rules = Rules::clone(present);
            rules.switched_off.insert(tool.to_owned(), off.clone());
            rules
        });
    }

    /// Switches a tool on again that was switched off by hand; `false` if it was not.
    #[must_use = "it says whether anything was switched on"]
    pub fn switch_on(&self, tool: &str) -> bool {
        let before = self.0.rcu(|present| {
            let mut rules = Rules::clone(present);
            rules.switched_off.remove(tool);
            rules
        });
        before.switched_off.contains_key(tool)
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
