use std::{
    any::{Any, TypeId},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use parking_lot::{Mutex, RwLock};

use crate::Instant;

/// What layers know of a tool from earlier calls, such as a limiter or a breaker. It belongs to the tool's name, not
/// to its snapshot: a reload carries it over.
///
/// Each layer keeps one value of a type of its own, so layers need not know of each other.
#[derive(Debug, Default)]
pub struct ToolState {
    slots: Slots,
    upstream: Option<Arc<UpstreamState>>,
    n_renewals: AtomicU64,
    /// Whether there is something in `disabled`: all that most calls look at.
    is_disabled: AtomicBool,
    disabled: Mutex<Option<DisabledTool>>,
    /// How often in a row the tool's credentials were refused.
    n_refusals: AtomicU32,
}

/// Why a tool is not called for a while, whoever asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisabledTool {
    /// Why: a lower-case fragment without secrets.
    pub reason: String,
    /// Since when.
    pub since: SystemTime,
    /// When a call tries whether it works again.
    pub until: Instant,
}

/// What several tools have in common that are run by the same thing: a server, or the host of an HTTP API. What layers
/// know of it from earlier calls is kept here, and a reload carries it over.
#[derive(Debug)]
pub struct UpstreamState {
    name: Arc<str>,
    slots: Slots,
    n_renewals: AtomicU64,
}

/// One value of each type that was asked for: one for each layer that keeps any, few enough to be looked through.
#[derive(Default)]
struct Slots(RwLock<Vec<(TypeId, Slot)>>);

type Slot = Arc<dyn Any + Send + Sync>;

impl ToolState {
    /// That of a tool which this upstream runs.
    #[must_use]
    pub fn new(upstream: Option<Arc<UpstreamState>>) -> Self {
        Self {
            slots: Slots::default(),
            upstream,
            n_renewals: AtomicU64::new(0),
            is_disabled: AtomicBool::new(false),
            disabled: Mutex::default(),
            n_refusals: AtomicU32::new(0),
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

    /// Counts that the tool's credentials were refused, and says how often that was in a row.
    pub fn refused(&self) -> u32 {
        self.n_refusals.fetch_add(1, Ordering::AcqRel).saturating_add(1)
    }

    /// Takes note that the tool's credentials were accepted.
    pub fn accepted(&self) {
        // Most calls find nothing to forget, and so write nothing that others read.
        if self.n_refusals.load(Ordering::Relaxed) > 0 {
            self.n_refusals.store(0, Ordering::Release);
        }
    }

    /// Why the tool is not called, if it is not.
    #[must_use]
    pub fn disabled(&self) -> Option<DisabledTool> {
        if self.is_disabled.load(Ordering::Acquire) {
            self.disabled.lock().clone()
        } else {
            None
        }
    }

    /// Switches the tool off; true if it was not already, whose reason and time then stay.
    pub fn disable(&self, disabled: DisabledTool) -> bool {
        let mut slot = self.disabled.lock();
        self.is_disabled.store(true, Ordering::Release);
        if let Some(before) = &mut *slot {
            before.until = disabled.until;
            return false;
        }
        *slot = Some(disabled);
        true
    }

    /// Lets one call try whether a tool works again whose time is over, and the next one only after another `pause`.
    pub fn try_out(&self, now: Instant, pause: Duration) -> bool {
        match &mut *self.disabled.lock() {
            Some(disabled) if now < disabled.until => false,
            Some(disabled) => {
                disabled.until = now + pause;
                true
            }
            None => true,
        }
    }

    /// Switches the tool on again; true if it was off.
    pub fn enable(&self) -> bool {
        let mut slot = self.disabled.lock();
        self.is_disabled.store(false, Ordering::Release);
        slot.take().is_some()
    }

    /// What the tool has in common with others, if anything.
    #[must_use]
    pub fn upstream(&self) -> Option<&Arc<UpstreamState>> {
        self.upstream.as_ref()
    }
}

impl UpstreamState {
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
        let slots = self.0.read();
        find(&slots)
    }

    fn get_or_init<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        self.get().unwrap_or_else(|| {
            let mut slots = self.0.write();
            // Another caller may have been here first.
            find(&slots).unwrap_or_else(|| {
                let made = Arc::new(make());
                slots.push((TypeId::of::<T>(), made.clone()));
                made
            })
        })
    }
}

fn find<T: Send + Sync + 'static>(slots: &[(TypeId, Slot)]) -> Option<Arc<T>> {
    let (_, slot) = slots.iter().find(|(of, _)| *of == TypeId::of::<T>())?;
    let slot = slot.clone().downcast();
    Some(slot.expect("a slot holds the type that it is filed under"))
}

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n_slots = self.0.read().len();
        write!(f, "{n_slots} slots")
    }
}
