use std::{fmt, sync::Arc};

use crate::Event;

/// Port that receives events: metrics, health, audit and breakers implement it.
///
/// It is called on the path of every call. Return at once and never block.
pub trait Observe: Send + Sync {
    /// Receives an event.
    fn observe(&self, event: &Event<'_>);
}

/// Closure as an observer: see [`observe_fn`].
#[derive(Clone, Copy)]
pub struct ObserveFn<F>(F);

/// Makes an observer of a closure.
///
/// # Examples
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use tool_core::{Event, Observe, observe_fn};
///
/// let n_retries = AtomicU32::new(0);
/// let observer = observe_fn(|event| {
///     if let Event::Retried { .. } = event {
///         n_retries.fetch_add(1, Ordering::Relaxed);
///     }
/// });
/// # let _: &dyn Observe = &observer;
/// ```
pub fn observe_fn<F>(function: F) -> ObserveFn<F>
where
    F: Fn(&Event<'_>) + Send + Sync,
{
    ObserveFn(function)
}

impl<F> Observe for ObserveFn<F>
where
    F: Fn(&Event<'_>) + Send + Sync,
{
    fn observe(&self, event: &Event<'_>) {
        (self.0)(event);
    }
}

impl<F> fmt::Debug for ObserveFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ObserveFn(..)")
    }
}

/// Observers of a call. The call carries them, so layers can emit events without knowing who listens:
/// `cx.observers.emit(&Event::…)`.
#[derive(Clone, Default)]
pub struct Observers {
    all: Option<Arc<[Arc<dyn Observe>]>>,
    own: Option<Arc<dyn Observe>>,
}

impl Observers {
    /// Returns `true` if there is no observer.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_none() && self.own.is_none()
    }

    /// Sets the observer of one call, which replaces any earlier one.
    #[must_use]
    pub fn with_call_observer(self, own: Arc<dyn Observe>) -> Self {
        Self {
            own: Some(own),
            ..self
        }
    }

    /// Removes the observer of one call, for work that outlives it.
    #[must_use]
    pub fn without_call_observer(self) -> Self {
        Self { own: None, ..self }
    }

    /// Passes an event to all observers.
    pub fn emit(&self, event: &Event<'_>) {
        let all = self.all.iter().flat_map(|observers| observers.iter());
        for observer in all.chain(&self.own) {
            observer.observe(event);
        }
    }
}

impl Observe for Observers {
    fn observe(&self, event: &Event<'_>) {
        self.emit(event);
    }
}

impl FromIterator<Arc<dyn Observe>> for Observers {
    fn from_iter<I: IntoIterator<Item = Arc<dyn Observe>>>(observers: I) -> Self {
        let observers: Arc<[_]> = observers.into_iter().collect();
        Self {
            all: (!observers.is_empty()).then_some(observers),
            own: None,
        }
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n_all = self.all.as_ref().map_or(0, |observers| observers.len());
        write!(f, "Observers({})", n_all + usize::from(self.own.is_some()))
    }
}
