//! Each feature of the facade compiles alone, and so do its tests.

use anyhow::{Context, Result};

use crate::console::say;
use crate::members::Members;
use crate::process::{cargo, run};
use crate::repository::Repository;

/// The crate whose features users choose.
const FACADE: &str = "toolplane";

/// Checks the facade without features, with each alone, and with the default ones.
pub(crate) fn each_feature(repository: &Repository) -> Result<()> {
    let members = Members::load(repository.root())?;
    let facade = members
        .get(FACADE)
        .with_context(|| format!("there is no member `{FACADE}`"))?;
    let features = facade
        .features
        .keys()
        .map(String::as_str)
        .filter(|feature| *feature != "default");
    for feature in std::iter::once("").chain(features) {
        say(format_args!(
            "features: `{FACADE}` with {}",
            if feature.is_empty() { "none" } else { feature }
        ));
        // The library by itself as well: what tests are built with may bring features that it lacks.
        let common = [
            "--quiet",
            "--package",
            FACADE,
            "--no-default-features",
            "--features",
            feature,
        ];
        run(cargo(repository.root()).arg("check").args(common).arg("--lib"))?;
        run(cargo(repository.root())
            .arg("clippy")
            .args(common)
            .args(["--tests", "--", "-D", "warnings"]))?;
    }
    Ok(())
}
