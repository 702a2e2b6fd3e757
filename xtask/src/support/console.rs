//! Messages to the user, and the format of violations.

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

/// Violation of a rule in the repository, found by a check.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    path: PathBuf,
    line: Option<usize>,
    message: String,
}

impl Violation {
    /// Creates a violation that concerns a whole file.
    pub fn in_file(path: impl Into<PathBuf>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            line: None,
            message: message.into(),
        }
    }

    /// Creates a violation on one line, counted from 1.
    pub fn on_line(path: impl Into<PathBuf>, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            line: Some(line),
            message: message.into(),
        }
    }

    /// Returns the file, relative to the root of the repository.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the message that describes the violation.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Writes one line to stderr. Stdout is reserved for the output of the commands that are run.
#[expect(clippy::print_stderr, reason = "the one place where xtask talks")]
pub fn say(line: impl Display) {
    eprintln!("{line}");
}

/// Prints all violations of a check.
///
/// # Errors
/// Returns an error if there is a violation.
pub fn refuse(check: &str, mut problems: Vec<Violation>) -> Result<()> {
    problems.sort();
    problems.dedup();
    for problem in &problems {
        say(problem);
    }
    match problems.len() {
        0 => {
            say(format_args!("{check}: nothing to report"));
            Ok(())
        }
        1 => bail!("`{check}` found 1 problem"),
        n_problems => bail!("`{check}` found {n_problems} problems"),
    }
}
