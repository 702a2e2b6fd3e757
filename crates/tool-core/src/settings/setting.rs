use std::{
    any::{Any, TypeId},
    fmt,
    sync::Arc,
    time::Duration,
};

use crate::Descriptor;

/// A setting of one layer: a value of a type of the layer's own, so that layers need not know of each other.
///
/// # Levels
/// A setting may stand in the defaults, for all tools of an upstream and for one tool. [`Setting::merged`] puts two levels
/// together; by default the nearer one counts as a whole. [`Setting::settled`] then fits the result to the tool, or drops it.
///
/// # Examples
/// ```
/// use tool_core::{Overrides, Setting, Settings, SettingLevel};
///
/// #[derive(Debug, Clone, PartialEq, Eq)]
/// struct MaxArguments(usize);
///
/// impl Setting for MaxArguments {}
///
/// let overrides = Overrides::default().with(MaxArguments(4096));
/// let settings = Settings::default().overridden(&overrides, SettingLevel::Tool);
/// assert_eq!(settings.get::<MaxArguments>(), Some(&MaxArguments(4096)));
/// ```
pub trait Setting: fmt::Debug + Clone + Eq + Send + Sync + 'static {
    /// Merges this setting, given at `level`, with that of the levels around it.
    #[must_use]
    fn merged(&self, wider: Option<&Self>, level: SettingLevel) -> Self {
        let _ = (wider, level);
        self.clone()
    }

    /// Fits the setting to a tool once all levels are merged. Returns `None` if the layer has nothing to do for the tool.
    #[must_use]
    fn settled(&self, tool: &Descriptor) -> Option<Self> {
        let _ = tool;
        Some(self.clone())
    }

    /// Returns `true` if attempts may run under contexts of their own, which are merged into the context of the call
    /// only when they end: for shared and for hedged attempts.
    #[must_use]
    fn forks_calls(&self) -> bool {
        false
    }
}

/// Level at which a setting is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SettingLevel {
    /// For all tools.
    Defaults,
    /// For all tools of an upstream.
    Upstream,
    /// For one tool.
    Tool,
}

/// Settings that the operator gives at one level: for one tool, for all tools of one server, or by default. A server
/// cannot set anything: settings in its description of a tool are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Overrides {
    /// Time limit of a whole call.
    pub call_timeout: Option<Duration>,
    slots: SettingSlots,
}

/// One setting of each type. There are few, so a lookup scans them in order. Clones share them until one is changed; none
/// take no memory.
#[derive(Clone, Default)]
pub(crate) struct SettingSlots(Option<Arc<Vec<Slot>>>);

type Slot = (TypeId, Arc<dyn DynSetting>);

/// A [`Setting`] of any type.
pub(crate) trait DynSetting: fmt::Debug + Send + Sync {
    fn as_any(&self) -> &dyn Any;
    fn equals(&self, other: &dyn DynSetting) -> bool;
    fn dyn_merged(&self, wider: Option<&dyn DynSetting>, level: SettingLevel) -> Arc<dyn DynSetting>;
    fn dyn_settled(&self, tool: &Descriptor) -> SettledSetting;
    fn dyn_forks_calls(&self) -> bool;
}

/// Result of [`Setting::settled`].
pub(crate) enum SettledSetting {
    /// The setting fits as it is: tools share it.
    Same,
    Changed(Arc<dyn DynSetting>),
    Dropped,
}

impl<T: Setting> DynSetting for T {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn equals(&self, other: &dyn DynSetting) -> bool {
        other.as_any().downcast_ref::<T>() == Some(self)
    }

    fn dyn_merged(&self, wider: Option<&dyn DynSetting>, level: SettingLevel) -> Arc<dyn DynSetting> {
        Arc::new(self.merged(wider.and_then(|wider| wider.as_any().downcast_ref()), level))
    }

    fn dyn_settled(&self, tool: &Descriptor) -> SettledSetting {
        match self.settled(tool) {
            Some(settled) if settled == *self => SettledSetting::Same,
            Some(settled) => SettledSetting::Changed(Arc::new(settled)),
            None => SettledSetting::Dropped,
        }
    }

    fn dyn_forks_calls(&self) -> bool {
        self.forks_calls()
    }
}

impl Overrides {
    /// Returns the setting of this type, if it is given.
    #[must_use]
    pub fn get<T: Setting>(&self) -> Option<&T> {
        self.slots.get()
    }

    /// Sets a setting, replacing the one of the same type.
    pub fn set<T: Setting>(&mut self, setting: T) {
        self.slots.set(setting);
    }

    /// Removes the setting of this type.
    pub fn remove<T: Setting>(&mut self) {
        self.slots.remove::<T>();
    }

    /// Returns the settings with this one, which replaces one of the same type.
    #[must_use]
    pub fn with<T: Setting>(mut self, setting: T) -> Self {
        self.set(setting);
        self
    }

    /// Merges in settings of wider levels, such as those of another file of the same level.
    pub fn merge(&mut self, wider: &Self) {
        self.call_timeout = self.call_timeout.or(wider.call_timeout);
        let mut merged = wider.slots.clone();
        merged.override_with(&self.slots, SettingLevel::Defaults);
        self.slots = merged;
    }

    pub(crate) fn slots(&self) -> &SettingSlots {
        &self.slots
    }
}

impl SettingSlots {
    pub(crate) fn get<T: Setting>(&self) -> Option<&T> {
        let slot = self.find(TypeId::of::<T>())?;
        slot.as_any().downcast_ref()
    }

    fn find(&self, id: TypeId) -> Option<&dyn DynSetting> {
        let (_, slot) = self.as_slice().iter().find(|(of, _)| *of == id)?;
        Some(&**slot)
    }

    fn as_slice(&self) -> &[Slot] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }

    pub(crate) fn set<T: Setting>(&mut self, setting: T) {
        self.put(TypeId::of::<T>(), Arc::new(setting));
    }

    fn put(&mut self, id: TypeId, setting: Arc<dyn DynSetting>) {
        let slots = Arc::make_mut(self.0.get_or_insert_default());
        match slots.iter_mut().find(|(of, _)| *of == id) {
            Some((_, slot)) => *slot = setting,
            None => slots.push((id, setting)),
        }
    }

    pub(crate) fn remove<T: Setting>(&mut self) {
        let is_set = self.get::<T>().is_some();
        if let Some(slots) = self.0.as_mut().filter(|_| is_set) {
            Arc::make_mut(slots).retain(|(of, _)| *of != TypeId::of::<T>());
        }
    }

    /// Merges each of the more specific settings with the one of the same type that is here.
    pub(crate) fn override_with(&mut self, nearer: &Self, level: SettingLevel) {
        for (id, setting) in nearer.as_slice() {
            let merged = setting.dyn_merged(self.find(*id), level);
            self.put(*id, merged);
        }
    }

    pub(crate) fn settle(&mut self, tool: &Descriptor) {
        let Some(slots) = &mut self.0 else { return };
        Arc::make_mut(slots).retain_mut(|(_, slot)| match slot.dyn_settled(tool) {
            SettledSetting::Same => true,
            SettledSetting::Changed(settled) => {
                *slot = settled;
                true
            }
            SettledSetting::Dropped => false,
        });
    }

    pub(crate) fn fork_calls(&self) -> bool {
        self.as_slice().iter().any(|(_, slot)| slot.dyn_forks_calls())
    }
}

impl PartialEq for SettingSlots {
    /// Compares the settings of each type, regardless of the order in which they were set.
    fn eq(&self, other: &Self) -> bool {
        let is_there = |(id, slot): &Slot| {
            let there = other.find(*id);
            there.is_some_and(|there| std::ptr::addr_eq(there, &**slot) || slot.equals(there))
        };
        let (slots, others) = (self.as_slice(), other.as_slice());
        std::ptr::eq(slots, others) || slots.len() == others.len() && slots.iter().all(is_there)
    }
}

impl Eq for SettingSlots {}

impl fmt::Debug for SettingSlots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.as_slice().iter().map(|(_, slot)| slot))
            .finish()
    }
}
