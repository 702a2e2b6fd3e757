use std::{
    any::{Any, TypeId},
    collections::HashMap,
    fmt,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// What layers know of a tool from earlier calls, such as a limiter or a breaker. It belongs to the tool's name, not
/// to its snapshot: a reload carries it over.
///
/// Each layer keeps one value of a type of its own, so layers need not know of each other.
#[derive(Debug, Default)]
pub struct ToolState {
    slots: Slots,
    upstream: Option<Arc<Upstream>>,
    n_renewals: AtomicU64,
}

/// What several tools have in common that are run by the same thing: a server, or the host of an HTTP API. What layers
/// know of it from earlier calls is kept here, and a reload carries it over.
#[derive(Debug)]
pub struct Upstream {
    name: Arc<str>,
    slots: Slots,
    n_renewals: AtomicU64,
}

/// One value of each type that was asked for.
#[derive(Default)]
struct Slots(RwLock<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl ToolState {
    /// That of a tool which this upstream runs.
    #[must_use]
    pub fn new(upstream: Option<Arc<Upstream>>) -> Self {
        Self {
            slots: Slots::default(),
            upstream,
            n_renewals: AtomicU64::new(0),
        }
    }

    /// The value of this type, made when first asked for.
    pub fn get_or_init<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        self.slots.get_or_init(make)
    }

    /// The value of this type, if it was asked for before.
    #[must_use]
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.slots.get()
    }

    /// How often credentials that the tool is run with were replaced, its own or its upstream's: answers under others are
    /// not those of the present ones.
    #[must_use]
    pub fn credential_version(&self) -> u64 {
        let of_upstream = self
            .upstream
            .as_ref()
            .map_or(0, |upstream| upstream.n_renewals.load(Ordering::Acquire));
        self.n_renewals.load(Ordering::Acquire) + of_upstream
    }

    /// Notes that the tool has other credentials from now on.
    pub fn credentials_renewed(&self) {
        self.n_renewals.fetch_add(1, Ordering::AcqRel);
    }

    /// What the tool has in common with others, if anything.
    #[must_use]
    pub fn upstream(&self) -> Option<&Arc<Upstream>> {
        self.upstream.as_ref()
    }
}

impl Upstream {
    /// One of this name, of which nothing is known yet.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            slots: Slots::default(),
            n_renewals: AtomicU64::new(0),
        }
    }

    /// Notes that all tools of the upstream have other credentials from now on.
    pub fn credentials_renewed(&self) {
        self.n_renewals.fetch_add(1, Ordering::AcqRel);
    }

    /// The server's name, or scheme and host: see [`Executor::upstream`](crate::Executor::upstream).
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The value of this type, made when first asked for.
    pub fn get_or_init<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        self.slots.get_or_init(make)
    }

    /// The value of this type, if it was asked for before.
    #[must_use]
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.slots.get()
    }
}

impl Slots {
    fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let slots = self.0.read().unwrap_or_else(PoisonError::into_inner);
        slots.get(&TypeId::of::<T>()).cloned().map(filed)
    }

    fn get_or_init<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        self.get().unwrap_or_else(|| {
            let mut slots = self.0.write().unwrap_or_else(PoisonError::into_inner);
            let slot = slots.entry(TypeId::of::<T>());
            filed(slot.or_insert_with(|| Arc::new(make())).clone())
        })
    }
}

fn filed<T: Send + Sync + 'static>(slot: Arc<dyn Any + Send + Sync>) -> Arc<T> {
    slot.downcast()
        .expect("a slot holds the type that it is filed under")
}

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n_slots = self.0.read().unwrap_or_else(PoisonError::into_inner).len();
        write!(f, "{n_slots} slots")
    }
}
