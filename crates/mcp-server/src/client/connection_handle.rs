use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// Handle of a connection or session, with a number that no other in this process has. Reports the end of the connection
/// when it is dropped.
pub(crate) struct ConnectionHandle {
    number: u64,
    /// Digits of the number.
    name: Arc<str>,
    on_disconnect: Box<dyn Fn(u64) + Send + Sync>,
}

impl ConnectionHandle {
    /// Creates a handle; `on_disconnect` is called with its number when it is dropped.
    pub(crate) fn new(on_disconnect: impl Fn(u64) + Send + Sync + 'static) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        Self {
            number,
            name: number.to_string().into(),
            on_disconnect: Box::new(on_disconnect),
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }
}

impl Drop for ConnectionHandle {
    fn drop(&mut self) {
        (self.on_disconnect)(self.number);
    }
}

impl fmt::Debug for ConnectionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ConnectionHandle").field(&self.number).finish()
    }
}
