//! Replaces child processes if the feature `stdio` is disabled.

/// Child process, of which there is none.
pub(crate) enum Process {}

#[derive(Debug, Clone)]
pub(crate) enum ProcessHandle {}

/// Way in which the child is to end.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stop {
    Orderly,
    Now,
}

impl Process {
    pub(crate) fn handle(&self) -> ProcessHandle {
        match *self {}
    }

    pub(crate) fn stderr_text(&self) -> String {
        match *self {}
    }
}

impl ProcessHandle {
    pub(crate) fn record_descendants(&self) {
        match *self {}
    }

    pub(crate) fn stop(&self, _: Stop) {
        match *self {}
    }

    pub(crate) async fn wait(&self) {
        match *self {}
    }

    pub(crate) async fn exit_description(&self) -> String {
        match *self {}
    }
}
