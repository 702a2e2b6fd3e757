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

/// State of a tool that layers keep between calls, such as a limiter or a breaker. It belongs to the tool's name, not
/// to its snapshot: a reload keeps it.
///
/// Each layer stores one value of a type of its own, so layers need not know each other.
#[derive(Debug, Default)]
pub struct ToolState {
    slots: Slots,
    upstream: Option<Arc<UpstreamState>>,
    n_renewals: AtomicU64,
    /// `true` if `disabled` has a value. Most calls read only this.
    is_disabled: AtomicBool,
    disabled: Mutex<Option<Box<DisabledTool>>>,
    /// Number of consecutive rejections of the tool's credentials.
    n_refusals: AtomicU32,
}

/// Reason and time of a disabled tool, which no caller can call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DisabledTool {
    /// Reason: a lower-case fragment without secrets.
    pub reason: String,
    /// Time at which it was disabled.
    pub since: SystemTime,
    /// Time after which a call probes whether it works again.
    pub until: Instant,
}

impl DisabledTool {
    /// Creates the record of a disabled tool: the reason, the time of day, and the time after which it is probed.
    #[must_use]
    pub fn new(reason: impl Into<String>, since: SystemTime, until: Instant) -> Self {
        Self {
            reason: reason.into(),
            since,
            until,
        }
    }
}

/// State that the tools of one upstream share: a server, or the host of an HTTP API. Layers store values in it, and a
/// reload keeps it.
#[derive(Debug)]
pub struct UpstreamState {
    name: Arc<str>,
    slots: Slots,
    n_renewals: AtomicU64,
}

/// Values by type, one for each layer that stores any. A linear scan is fast enough for so few.
#[derive(Default)]
struct Slots(RwLock<Vec<(TypeId, Slot)>>);

type Slot = Arc<dyn Any + Send + Sync>;

impl ToolState {
    /// Creates the state of a tool of this upstream.
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

    /// Returns the value of this type, creating it on first use.
    pub fn get_or_init<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        self.slots.get_or_init(make)
    }

    /// Returns the value of this type, if it exists.
    #[must_use]
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.slots.get()
    }

    /// Returns the number of times that the credentials of the tool or its upstream were replaced. Results obtained
    /// with other credentials are not shared.
    #[must_use]
    pub fn credential_version(&self) -> u64 {
        let of_upstream = self
            .upstream
            .as_ref()
            .map_or(0, |upstream| upstream.n_renewals.load(Ordering::Acquire));
        self.n_renewals.load(Ordering::Acquire) + of_upstream
    }

    /// Records that the tool has new credentials.
    pub fn credentials_renewed(&self) {
        self.n_renewals.fetch_add(1, Ordering::AcqRel);
    }

    /// Counts a rejection of the tool's credentials and returns the number of consecutive ones.
    pub fn refused(&self) -> u32 {
        self.n_refusals.fetch_add(1, Ordering::AcqRel).saturating_add(1)
    }

    /// Records that the tool's credentials were accepted.
    pub fn accepted(&self) {
        // Usually there is nothing to reset, and nothing is written that other calls read.
        if self.n_refusals.load(Ordering::Relaxed) > 0 {
            self.n_refusals.store(0, Ordering::Release);
        }
    }

    /// Returns why the tool is disabled, if it is.
    #[must_use]
    pub fn disabled(&self) -> Option<DisabledTool> {
        if self.is_disabled.load(Ordering::Acquire) {
            self.disabled.lock().as_deref().cloned()
        } else {
            None
        }
    }

    /// Disables the tool. Returns `false` if it was disabled already; its reason and time then stay.
    pub fn disable(&self, disabled: DisabledTool) -> bool {
        let mut slot = self.disabled.lock();
        self.is_disabled.store(true, Ordering::Release);
        if let Some(before) = &mut *slot {
            before.until = disabled.until;
            return false;
        }
        *slot = Some(Box::new(disabled));
        true
    }

    /// Allows one call to probe a tool whose time is over. The next one is allowed after another `pause`.
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

    /// Enables the tool. Returns `true` if it was disabled.
    pub fn enable(&self) -> bool {
        let mut slot = self.disabled.lock();
        self.is_disabled.store(false, Ordering::Release);
        slot.take().is_some()
    }

    /// Returns the state of its upstream, if it has one.
    #[must_use]
    pub fn upstream(&self) -> Option<&Arc<UpstreamState>> {
        self.upstream.as_ref()
    }
}

impl UpstreamState {
    /// Creates an empty state.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            slots: Slots::default(),
            n_renewals: AtomicU64::new(0),
        }
    }

    /// Records that all tools of the upstream have new credentials.
    pub fn credentials_renewed(&self) {
        self.n_renewals.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns the name of the server, or scheme and host: see [`Executor::upstream`](crate::Executor::upstream).
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns the value of this type, creating it on first use.
    pub fn get_or_init<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        self.slots.get_or_init(make)
    }

    /// Returns the value of this type, if it exists.
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
            // Another caller may have been faster.
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
