//! Contents of all packages: the program, and the texts that go with it.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::elf::Binary;
use super::entry::Entry;
use super::licences;
use crate::support::members::WorkspaceMembers;
use crate::support::process::{output, run_quietly};
use crate::support::repository::Repository;

/// Name of the program and of its packages.
pub(super) const NAME: &str = "toolplane";
/// One line about the program.
pub(super) const SUMMARY: &str =
    "One governed set of tools for agents: mock tools, HTTP APIs, scripts and MCP servers behind one gateway";
pub(super) const LICENCE: &str = "MIT OR Apache-2.0";
pub(super) const REPOSITORY: &str = "https://github.com/toolplane/toolplane";
/// Texts of the repository that every package has.
const DOCUMENTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];
/// Shells that the program has completions for.
const SHELLS: [&str; 5] = ["bash", "zsh", "fish", "powershell", "elvish"];

/// Program with its texts, from which each package takes what its users expect.
#[derive(Clone, Debug)]
pub(super) struct Release {
    pub(super) version: String,
    /// Time of all packed files, in seconds since 1970.
    pub(super) mtime: u64,
    pub(super) binary: Binary,
    /// Program without symbols.
    pub(super) program: Vec<u8>,
    /// Completions by the name of their shell.
    pub(super) completions: Vec<(String, Vec<u8>)>,
    /// Manual pages of section 1.
    pub(super) pages: Vec<Entry>,
    /// README, changelog and licences.
    pub(super) documents: Vec<Entry>,
}

impl Release {
    /// Collects the contents. The program itself writes its completions and manual pages, so they are for its version.
    pub(super) fn collect(repository: &Repository, program: &Path) -> Result<Self> {
        let members = WorkspaceMembers::load(repository.root())?;
        let version = members
            .get("toolplane-cli")
            .context("the workspace has no `toolplane-cli`")?
            .version
            .clone();
        let said = output(Command::new(program).arg("--version"))?;
        ensure!(
            said.trim() == format!("{NAME} {version}"),
            "`{}` is `{}`, and the checkout has version {version}: build it again",
            program.display(),
            said.trim()
        );
        let content = fs::read(program).with_context(|| format!("failed to read `{}`", program.display()))?;
        let binary = Binary::read(&content)?;
        let completions = SHELLS
            .iter()
            .map(|shell| {
                let script = output(Command::new(program).args(["completions", shell]))?;
                Ok((shell.to_string(), script.into_bytes()))
            })
            .collect::<Result<_>>()?;
        let mut documents = Vec::new();
        for file in DOCUMENTS {
            let text = repository
                .text(file)
                .with_context(|| format!("failed to read `{file}`"))?;
            documents.push(Entry::file(file, text));
        }
        let others = licences::third_party(repository, &binary.target())?;
        documents.push(Entry::file(licences::FILE, others));
        Ok(Self {
            version,
            mtime: mtime(repository)?,
            pages: pages(program)?,
            binary,
            program: content,
            completions,
            documents,
        })
    }

    /// Returns the content of a document.
    pub(super) fn document(&self, name: &str) -> Result<&[u8]> {
        let document = self.documents.iter().find(|entry| entry.path == name);
        Ok(&document
            .with_context(|| format!("the release has no `{name}`"))?
            .content)
    }

    /// Returns the licences, of the program and of the crates in it.
    pub(super) fn licences(&self) -> impl Iterator<Item = &Entry> {
        self.documents
            .iter()
            .filter(|entry| entry.path.starts_with("LICENSE") || entry.path == licences::FILE)
    }
}

/// Returns the manual pages that the program writes, sorted by name.
fn pages(program: &Path) -> Result<Vec<Entry>> {
    let folder = tempfile::tempdir().context("failed to make a temporary folder")?;
    run_quietly(Command::new(program).arg("man").arg("--out").arg(folder.path()))?;
    let mut pages = Vec::new();
    for file in fs::read_dir(folder.path()).context("failed to list the manual pages")? {
        let file = file.context("failed to list the manual pages")?;
        let content = fs::read(file.path()).context("failed to read a manual page")?;
        pages.push(Entry::file(file.file_name().to_string_lossy(), content));
    }
    pages.sort_by(|a, b| a.path.cmp(&b.path));
    ensure!(!pages.is_empty(), "`{NAME} man` wrote no page");
    Ok(pages)
}

/// Returns `SOURCE_DATE_EPOCH` or, without it, the time of the commit.
fn mtime(repository: &Repository) -> Result<u64> {
    let said = match std::env::var_os("SOURCE_DATE_EPOCH") {
        Some(given) => given.to_string_lossy().into_owned(),
        None => {
            output(
                Command::new("git")
                    .current_dir(repository.root())
                    .args(["log", "-1", "--format=%ct"]),
            )
            .context("the packages need a time: set `SOURCE_DATE_EPOCH`, or pack a checkout of git")?
        }
    };
    let said = said.trim();
    said.parse().with_context(|| {
        format!("`{said}` is no number of seconds since 1970, which `SOURCE_DATE_EPOCH` must be")
    })
}
