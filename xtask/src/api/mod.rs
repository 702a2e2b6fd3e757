//! Public API of the published libraries: no breaking change that is not accepted, and no third-party crate in it that
//! is not listed.

mod baseline;
mod description;
mod semver;
mod third_party;

use std::fs;

use anyhow::{Context, Result, bail};

use self::baseline::{Baseline, Unpacked};
use self::description::ApiDescription;
use crate::support::console::{refuse, say};
use crate::support::members::WorkspaceMembers;
use crate::support::repository::Repository;

/// Command that accepts the present API.
const ACCEPT: &str = "cargo xtask api --accept";
/// Page that tells users of changes.
const CHANGELOG: &str = "CHANGELOG.md";

/// Compares the public API of every published library with the baseline, and the third-party crates in it with their
/// page. With `accept`, makes the present API the baseline and writes the page.
///
/// # Errors
/// Returns an error if there is a breaking change or an unlisted third-party crate. With `accept`, returns an error if
/// there is a breaking change that the changelog does not mention.
pub fn api(repository: &Repository, accept: bool) -> Result<()> {
    let members = WorkspaceMembers::load(repository.root())?;
    let baseline = Baseline::find(repository)?;
    if accept {
        return accept_api(repository, &members, &baseline);
    }
    let commit = match baseline {
        Baseline::Missing => {
            bail!("there is no baseline of the public API: `{ACCEPT}` records the present one")
        }
        Baseline::Pending => {
            say("api: accepted with the next commit");
            return Ok(());
        }
        Baseline::Same => {
            say("api: the sources are those of the baseline");
            return Ok(());
        }
        Baseline::Commit(commit) => commit,
    };
    let present = describe(repository, &members)?;
    refuse("api", third_party::check(repository, &members, &present)?)?;
    let (breaks, _) = breaks_since(repository, &commit, &present)?;
    if breaks.is_empty() {
        say("api: no breaking change");
        return Ok(());
    }
    say(breaks.join("\n\n"));
    bail!(
        "the public API has breaking changes: make them compatible, or describe them in `{CHANGELOG}` and accept them \
         with `{ACCEPT}`"
    )
}

fn accept_api(repository: &Repository, members: &WorkspaceMembers, baseline: &Baseline) -> Result<()> {
    let present = describe(repository, members)?;
    if let Baseline::Commit(commit) = baseline {
        let (breaks, unpacked) = breaks_since(repository, commit, &present)?;
        say(breaks.join("\n\n"));
        let changelog = fs::read_to_string(unpacked.source.join(CHANGELOG)).unwrap_or_default();
        let is_described = repository.text(CHANGELOG).is_some_and(|text| text != changelog);
        if !breaks.is_empty() && !is_described {
            bail!(
                "describe these breaking changes in `{CHANGELOG}` first: it is the same as in the baseline"
            );
        }
    }
    third_party::write(repository, members, &present)?;
    if *baseline == Baseline::Pending {
        say("api: already accepted with the next commit");
        return Ok(());
    }
    let text = baseline::next(repository.text(baseline::FILE).as_deref());
    fs::write(repository.root().join(baseline::FILE), text)
        .with_context(|| format!("failed to write `{}`", baseline::FILE))?;
    say(format_args!(
        "api: wrote `{}`; the commit that contains it is the new baseline",
        baseline::FILE
    ));
    Ok(())
}

fn describe(repository: &Repository, members: &WorkspaceMembers) -> Result<Vec<ApiDescription>> {
    let folder = repository.target().join("api/present");
    description::describe(members, &folder, &members.target_directory)
}

/// Compares the present API with that of a commit.
fn breaks_since(
    repository: &Repository,
    commit: &str,
    present: &[ApiDescription],
) -> Result<(Vec<String>, Unpacked)> {
    let unpacked = baseline::unpack(repository, commit)?;
    let before = baseline::describe(&unpacked)?;
    let breaks = semver::breaks(repository, &before, present)?;
    Ok((breaks, unpacked))
}
