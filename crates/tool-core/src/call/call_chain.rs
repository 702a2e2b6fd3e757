use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

/// Tools whose calls led to a call: the workflow that makes it as a step, and the workflows around that one.
///
/// All calls below the outermost workflow count towards its limit.
#[derive(Debug)]
pub struct CallChain {
    tool: Arc<str>,
    outer: Option<Arc<Self>>,
    calls_left: Arc<AtomicU32>,
}

impl CallChain {
    /// Maximum number of tools in a chain.
    pub const MAX_DEPTH: usize = 8;

    /// Begins the chain of the calls that a tool makes. `outer` is the chain of the tool's own call. `max_calls` is the limit of
    /// the outermost tool; inner ones count towards that.
    #[must_use]
    pub fn begin(tool: Arc<str>, outer: Option<Arc<Self>>, max_calls: u32) -> Arc<Self> {
        let shared = outer.as_ref().map(|outer| outer.calls_left.clone());
        Arc::new(Self {
            tool,
            outer,
            calls_left: shared.unwrap_or_else(|| Arc::new(AtomicU32::new(max_calls))),
        })
    }

    /// Returns the tools of the chain, innermost first.
    pub fn tools(&self) -> impl Iterator<Item = &Arc<str>> {
        let chain = std::iter::successors(Some(self), |chain| chain.outer.as_deref());
        chain.map(|chain| &chain.tool)
    }

    /// Counts a call. Returns `false`, and counts nothing, if no call is left.
    #[must_use]
    pub fn take_call(&self) -> bool {
        let take = |left: u32| left.checked_sub(1);
        self.calls_left
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, take)
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_calls_count_towards_the_limit_of_the_outermost_tool() {
        let outer = CallChain::begin("outer".into(), None, 2);
        let inner = CallChain::begin("inner".into(), Some(outer.clone()), 100);
        assert_eq!(
            inner.tools().map(|tool| &**tool).collect::<Vec<_>>(),
            ["inner", "outer"]
        );
        assert!(inner.take_call());
        assert!(outer.take_call());
        assert!(!inner.take_call());
        assert!(!outer.take_call());
    }
}
