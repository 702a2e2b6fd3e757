//! Changes of several files that are made wholly or not at all.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use tool_registry::StoreError;

use crate::{
    disk::{Disk, LOCAL},
    documents,
};

/// Its appearance is the commit of a change.
pub(crate) const JOURNAL: &str = ".toolplane/journal.json";
/// Folder of files that are written and not committed yet.
const STAGED: &str = ".toolplane/staged";

/// Steps of a committed change. Each can be repeated.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Journal {
    steps: Vec<Step>,
}

/// Step: moves a staged file or folder to its place, or removes what is at a place.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    to: String,
}

/// Change that is being prepared. Nothing of it is visible before [`Staging::commit`].
pub(crate) struct Staging<'a> {
    disk: &'a Disk,
    journal: Journal,
    folders: BTreeSet<String>,
}

impl<'a> Staging<'a> {
    /// Begins a change. Removes what an earlier one left that was not committed.
    pub(crate) fn begin(disk: &'a Disk) -> Result<Self, StoreError> {
        disk.remove(STAGED)?;
        disk.create_folder(STAGED)?;
        Ok(Self {
            disk,
            journal: Journal::default(),
            folders: BTreeSet::from([STAGED.to_owned()]),
        })
    }

    fn next(&mut self, to: String) -> Result<String, StoreError> {
        if let Err(reason) = documents::check_path(&to) {
            return Err(StoreError::unavailable(&self.disk.name, reason));
        }
        let from = format!("{STAGED}/{}", self.journal.steps.len());
        self.journal.steps.push(Step {
            from: Some(from.clone()),
            to,
        });
        Ok(from)
    }

    /// Adds a file, or a new content of it.
    pub(crate) fn file(&mut self, to: impl Into<String>, content: &[u8]) -> Result<(), StoreError> {
        let from = self.next(to.into())?;
        self.disk.write(&from, content)
    }

    /// Adds a folder with these files, by their paths in it, instead of one that exists.
    pub(crate) fn folder<'f>(
        &mut self,
        to: String,
        files: impl IntoIterator<Item = (String, &'f [u8])>,
    ) -> Result<(), StoreError> {
        let from = self.next(to)?;
        for (path, content) in files {
            let file = format!("{from}/{path}");
            let folders = file.match_indices('/').map(|(at, _)| file[..at].to_owned());
            self.folders
                .extend(folders.filter(|folder| folder.len() >= from.len()));
            if let Some((folder, _)) = file.rsplit_once('/') {
                self.disk.create_folder(folder)?;
            }
            self.disk.write(&file, content)?;
        }
        Ok(())
    }

    /// Removes a file or a folder.
    pub(crate) fn remove(&mut self, to: String) {
        self.journal.steps.push(Step { from: None, to });
    }

    /// Makes the change.
    pub(crate) fn commit(self) -> Result<(), StoreError> {
        for folder in &self.folders {
            self.disk.sync_folder(folder)?;
        }
        let text = documents::write(&self.journal);
        let text = text.map_err(|error| StoreError::corrupt("a journal", error))?;
        self.disk.replace(JOURNAL, text.as_bytes())?;
        self.journal.replay(self.disk)
    }
}

/// Completes a change that was interrupted after its commit.
pub(crate) fn recover(disk: &Disk) -> Result<(), StoreError> {
    let Some(text) = disk.read(JOURNAL)? else {
        return Ok(());
    };
    let journal: Journal =
        documents::read(&text).map_err(|reason| StoreError::corrupt(format!("`{JOURNAL}`"), reason))?;
    for step in &journal.steps {
        let checked = [Some(&step.to), step.from.as_ref()];
        for path in checked.into_iter().flatten() {
            documents::check_path(path)
                .map_err(|reason| StoreError::corrupt(format!("`{JOURNAL}`"), reason))?;
        }
    }
    journal.replay(disk)
}

impl Journal {
    fn replay(&self, disk: &Disk) -> Result<(), StoreError> {
        let mut folders = BTreeSet::from([""]);
        for step in &self.steps {
            let parents = step.to.match_indices('/').map(|(at, _)| &step.to[..at]);
            folders.extend(parents);
            match &step.from {
                // It was moved before the interruption.
                Some(from) if !disk.is_there(from)? => {}
                Some(from) => {
                    if let Some((parent, _)) = step.to.rsplit_once('/') {
                        disk.create_folder(parent)?;
                    }
                    disk.put(from, &step.to)?;
                }
                None => disk.remove(&step.to)?,
            }
        }
        for folder in folders {
            disk.sync_folder_if_there(folder)?;
        }
        disk.remove(JOURNAL)?;
        disk.sync_folder(LOCAL)
    }
}
