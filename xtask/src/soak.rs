//! Runs the tests with many seeded points in full. Every other run of the tests takes a tenth of the points.

use anyhow::Result;

use crate::support::console::say;
use crate::support::process::{cargo, run};
use crate::support::repository::Repository;

/// Tests that take a tenth of their points unless this variable is set: the package, and the beginning of the names.
const TESTS: [(&str, &str); 4] = [
    ("tool-store-sqlite", "kill::"),
    ("tool-store-postgres", "kill::"),
    ("tool-store-files", "kill::"),
    ("toolplane", "kill::"),
];
const ALL_POINTS: (&str, &str) = ("TOOLPLANE_SOAK", "1");

/// Runs all points.
///
/// # Errors
/// Returns an error if a test fails.
pub fn soak(repository: &Repository) -> Result<()> {
    for (package, filter) in TESTS {
        say(format_args!("soak: `{filter}` of {package} at all points ..."));
        let mut command = cargo(repository.root());
        command.args([
            "test",
            "--quiet",
            "--package",
            package,
            "--test",
            "it",
            "--",
            filter,
        ]);
        run(command.env(ALL_POINTS.0, ALL_POINTS.1))?;
    }
    Ok(())
}
