use std::{future::ready, sync::Arc};

use tool_core::BoxFuture;

use super::{Pin, PinSet};

/// Port to the storage of accepted definitions.
///
/// A resolution reads [`Pins::snapshot`] only and does no I/O. An implementation holds the whole set in memory, reads it once
/// when it is created, and again in [`Pins::refresh`]. It may leave the definitions in the storage, since a comparison needs none:
/// see [`Pin::with_stored`].
///
/// # Examples
/// ```
/// use raw_json::RawJson;
/// use tool_core::Feature;
/// use tool_registry::{MemoryPins, Pin, PinKey, Pins};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let pins = MemoryPins::default();
/// let definition = RawJson::parse(r#"{"name":"read","inputSchema":{"type":"object"}}"#)?;
/// let key = PinKey::new("files", Feature::Tool, "read");
/// pins.accept(vec![Pin::new(key, definition.clone())]).await?;
///
/// let set = pins.snapshot();
/// let pin = set.get("files", Feature::Tool, "read").expect("it was accepted");
/// assert!(pin.matches(&definition, None));
/// # Ok(())
/// # }
/// ```
pub trait Pins: Send + Sync {
    /// Returns the pins as they were last read or written. Cheap: no I/O.
    fn snapshot(&self) -> Arc<PinSet>;

    /// Waits until [`Pins::snapshot`] blocks nobody. Default: it never does. For a storage that is still being read.
    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }

    /// Records the definitions of first use. Never replaces a pin of the same key. Returns at once, with the pins in the
    /// snapshot; a durable storage writes them later, at the latest in [`Pins::flush`], and a failure costs the next run a first use.
    fn add_first_used(&self, pins: Vec<Pin>);

    /// Sets the pins of definitions that an operator accepted. They are stored when the future completes.
    ///
    /// # Cancellation
    /// If the future is dropped, either all or none of the pins are set.
    ///
    /// # Errors
    /// If the storage does not work. No pin is changed then.
    fn accept(&self, pins: Vec<Pin>) -> BoxFuture<'_, Result<(), PinsError>>;

    /// Reads pins that others have written. Returns `true` if the snapshot has changed.
    ///
    /// # Cancellation
    /// Dropping the future leaves the snapshot as it was.
    ///
    /// # Errors
    /// If the storage cannot be read. The snapshot stays as it was.
    fn refresh(&self) -> BoxFuture<'_, Result<bool, PinsError>>;

    /// Stores the definitions of first use that are not stored yet, at the end of a program. Default: there are none.
    ///
    /// # Cancellation
    /// If the future is dropped, they may not be stored.
    ///
    /// # Errors
    /// If the storage does not work.
    fn flush(&self) -> BoxFuture<'_, Result<(), PinsError>> {
        Box::pin(ready(Ok(())))
    }
}

/// Error of the storage of pins. No definition is accepted by it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PinsError {
    /// The storage cannot be read.
    #[error("cannot read the pins of definitions in {place}: {reason}")]
    Read {
        /// File or database.
        place: String,
        /// Reason, with the line if it has one.
        reason: String,
    },
    /// The storage cannot be written.
    #[error("cannot write the pins of definitions in {place}: {reason}")]
    Write {
        /// File or database.
        place: String,
        /// Reason.
        reason: String,
    },
}
