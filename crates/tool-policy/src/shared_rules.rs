use std::{fmt, sync::Arc};

use arc_swap::ArcSwap;

use crate::Rules;

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

    /// Puts others in their place. A call that was admitted stays so.
    pub fn store(&self, rules: Rules) {
        self.0.store(Arc::new(rules));
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
