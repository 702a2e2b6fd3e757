use std::{
    fmt,
    ops::{Deref, DerefMut},
};

/// Value that most items leave as it is by default. It takes one word then, instead of the memory of all its fields: a
/// registry may hold 100,000 items.
///
/// Its fields are read and written as if it were the value itself.
///
/// # Examples
/// ```
/// use tool_core::{Descriptor, ExecutorSpec};
///
/// let mut tool = Descriptor::new("job", ExecutorSpec::new("mock"));
/// assert_eq!(tool.metadata.idempotent, None);
/// tool.metadata.idempotent = Some(true);
/// assert_eq!(tool.metadata.idempotent, Some(true));
/// ```
#[derive(Clone)]
pub struct OrDefault<T>(Option<Box<T>>);

/// Type whose default value is borrowed from wherever it is kept.
pub trait StaticDefault: Default + 'static {
    /// Returns the default value.
    fn static_default() -> &'static Self;
}

impl<T> Default for OrDefault<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: StaticDefault + PartialEq> From<T> for OrDefault<T> {
    fn from(value: T) -> Self {
        Self((value != *T::static_default()).then(|| Box::new(value)))
    }
}

impl<T: StaticDefault> Deref for OrDefault<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.0 {
            Some(value) => value,
            None => T::static_default(),
        }
    }
}

impl<T: StaticDefault> DerefMut for OrDefault<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}

impl<T: StaticDefault + PartialEq> PartialEq for OrDefault<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: StaticDefault + Eq> Eq for OrDefault<T> {}

impl<T: StaticDefault + fmt::Debug> fmt::Debug for OrDefault<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::OrDefault;
    use crate::Metadata;

    #[test]
    fn a_default_takes_one_word_and_equals_a_written_one() {
        assert_eq!(size_of::<OrDefault<Metadata>>(), size_of::<usize>());
        let mut written = OrDefault::<Metadata>::default();
        written.tags.push("a".to_owned());
        written.tags.clear();
        assert!(written.0.is_some());
        assert_eq!(written, OrDefault::default());
        assert!(OrDefault::from((*written).clone()).0.is_none());
        written.tags.push("a".to_owned());
        assert_ne!(written, OrDefault::default());
        assert_eq!(OrDefault::from((*written).clone()), written);
    }
}
