//! Tests that cannot run on this machine.

use std::env;
use std::fs::OpenOptions;
use std::io::Write;
use std::thread;

/// Reason why a test cannot run on this machine.
#[derive(Clone, Debug)]
#[must_use = "a skip that is not reported looks like a passed test"]
pub struct Skip {
    reason: String,
}

impl Skip {
    /// Creates a skip. The reason is a lower-case fragment that names what is missing and what to do.
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
        }
    }

    /// Returns the reason.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Appends the skip to the file that `TOOLPLANE_SKIPS` names, where `cargo xtask test` lists it at the end.
    ///
    /// # Panics
    /// When the file cannot be written, or when `CI` is `true`: there a skipped test is a failed one.
    pub fn report(self) {
        let thread = thread::current();
        let line = format!("{}: {}\n", thread.name().unwrap_or("a test"), self.reason);
        if let Some(path) = env::var_os("TOOLPLANE_SKIPS") {
            OpenOptions::new()
                .create(true)
                .append(true)
                .open(&path)
                .and_then(|mut file| file.write_all(line.as_bytes()))
                .expect("the file of skips is writable, `cargo xtask test` made its folder");
        }
        assert!(
            env::var_os("CI").is_none_or(|value| value != "true"),
            "skipped in CI: {line}"
        );
    }
}

/// Reports that the running test cannot run here; see [`Skip::report`].
pub fn skip(reason: impl Into<String>) {
    Skip::new(reason).report();
}
