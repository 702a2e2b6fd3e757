use std::{
    any::{Any, TypeId},
    collections::HashMap,
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

/// What layers know of a tool from earlier calls, such as a limiter or a breaker. It belongs to the tool's name, not
/// to its snapshot: a reload carries it over.
///
/// Each layer keeps one value of a type of its own, so layers need not know of each other.
#[derive(Default)]
pub struct ToolState {
    slots: RwLock<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

impl ToolState {
    /// The value of this type, made when first asked for.
    pub fn get_or_init<T: Send + Sync + 'static>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let id = TypeId::of::<T>();
        let known = self
            .slots
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&id)
            .cloned();
        let slot = known.unwrap_or_else(|| {
            let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
            slots.entry(id).or_insert_with(|| Arc::new(make())).clone()
        });
        slot.downcast()
            .expect("a slot holds the type that it is filed under")
    }
}

impl fmt::Debug for ToolState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n_slots = self.slots.read().unwrap_or_else(PoisonError::into_inner).len();
        f.debug_struct("ToolState").field("n_slots", &n_slots).finish()
    }
}
