use std::{future::ready, time::SystemTime};

use crate::BoxFuture;

/// Port to a storage of texts that can be made again, such as the lists of servers. A text is stored under a name and a digest of
/// the settings that it depends on.
pub trait KeptTexts: Send + Sync {
    /// Loads texts, in the order of the keys; `None` for each key without a text.
    ///
    /// # Errors
    /// If the storage does not work.
    fn load<'a>(
        &'a self,
        keys: &'a [(String, String)],
    ) -> BoxFuture<'a, Result<Vec<Option<String>>, KeptTextsError>>;

    /// Stores a text, and replaces the one that is stored under the same name and digest.
    ///
    /// # Errors
    /// If the storage does not work.
    fn save(&self, key: (String, String), text: String) -> BoxFuture<'_, Result<(), KeptTextsError>>;

    /// Returns the names of the stored texts, with the time at which the newest of each name was stored. Default: none, for a
    /// storage that does not know the times.
    ///
    /// # Errors
    /// If the storage does not work.
    fn kept_at(&self) -> BoxFuture<'_, Result<Vec<(String, SystemTime)>, KeptTextsError>> {
        Box::pin(ready(Ok(Vec::new())))
    }

    /// Deletes all texts of a name, or all of them, and returns their number.
    ///
    /// # Errors
    /// If the storage does not work.
    fn forget<'a>(&'a self, name: Option<&'a str>) -> BoxFuture<'a, Result<usize, KeptTextsError>>;
}

/// Error of a storage of texts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the store of kept texts does not work: {message}")]
pub struct KeptTextsError {
    message: String,
}

impl KeptTextsError {
    /// Creates the error of a storage that does not work.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}
