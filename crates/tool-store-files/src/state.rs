//! The present state of a directory, as one handle knows it.

use std::collections::BTreeSet;

use serde::Deserialize;
use tool_registry::{
    OfferedTool, ServerRecord, StoreChanges, StoreError, StoredVersion, ToolAlias, ToolChange, ToolRecord,
};

use crate::{
    content::read_version,
    disk::{Access, Disk, Stamp},
    documents::{self, Tool},
    journal::{JOURNAL, Staging, recover},
    marks::{MARKS, Marks},
    operations,
    tree::Tree,
};

const FORMAT_FILE: &str = "store.json";
/// Format of the directory that this program writes.
const FORMAT: i64 = 1;
/// Has git keep the bytes of the content, whatever the line ends of the system are.
const ATTRIBUTES: (&str, &str) = ("tools/.gitattributes", "* -text\n");

#[derive(Deserialize)]
struct FormatDocument {
    format: i64,
}

/// State of a directory.
#[derive(Default)]
pub(crate) struct State {
    tree: Tree,
    marks: Marks,
    /// Greatest revision that a caller may have seen, or that was saved.
    seen: u64,
    /// Stamp of the document from which the marks were read; `None` to read it again.
    marks_stamp: Option<Stamp>,
    /// `true` if the directory cannot be written: revisions count what this handle has seen.
    is_own: bool,
    is_loaded: bool,
    /// Tools whose latest version could not be read: they are looked at again.
    unusable: BTreeSet<String>,
    /// Tools among them that can be read again, and are marked as changed in marks that are not saved yet.
    restored: BTreeSet<String>,
}

impl State {
    /// Gets access for a read of everything, and brings the state up to date. `None` if there is no directory.
    fn open(&mut self, disk: &Disk) -> Result<Option<Access>, StoreError> {
        if !disk.exists()? {
            return match self.is_loaded {
                true => Err(StoreError::unavailable(&disk.name, "the directory is gone")),
                false => Ok(None),
            };
        }
        let access = disk.lock_shared()?;
        let is_interrupted = disk.is_there(JOURNAL)?;
        if !is_interrupted {
            self.load(disk)?;
            if !self.absorb(disk) || self.is_own {
                self.settle();
                return Ok(Some(access));
            }
        }
        drop(access);
        let Some(access) = disk.lock_exclusive()? else {
            if is_interrupted {
                let message =
                    "a change was interrupted, and this process may not complete it: it may not write";
                return Err(StoreError::unavailable(&disk.name, message));
            }
            self.is_own = true;
            self.settle();
            return Ok(Some(disk.lock_shared()?));
        };
        self.update(disk)?;
        self.save(disk)?;
        Ok(Some(access))
    }

    /// Gets access for a read of one tool. Reads nothing else if neither this tool nor any other was changed by this program.
    fn open_tool(&mut self, disk: &Disk, tool: &str) -> Result<Option<Access>, StoreError> {
        if self.is_loaded && disk.exists()? {
            let access = disk.lock_shared()?;
            if !disk.is_there(JOURNAL)?
                && (self.is_own || disk.stamp(MARKS)? == self.marks_stamp)
                && self.tree.is_current(disk, tool)?
            {
                return Ok(Some(access));
            }
        }
        self.open(disk)
    }

    /// Completes what was interrupted, and reads everything that changed. The caller has exclusive access.
    fn update(&mut self, disk: &Disk) -> Result<(), StoreError> {
        recover(disk)?;
        self.is_own = false;
        self.marks_stamp = None;
        self.load(disk)?;
        self.absorb(disk);
        Ok(())
    }

    /// Reads the documents and marks that changed.
    fn load(&mut self, disk: &Disk) -> Result<(), StoreError> {
        check_format(disk)?;
        self.tree.scan(disk)?;
        self.is_loaded = true;
        if self.is_own {
            return Ok(());
        }
        let stamp = disk.stamp(MARKS)?;
        if stamp.is_some() && stamp == self.marks_stamp {
            return Ok(());
        }
        let marks = match disk.read(MARKS)? {
            Some(text) => documents::read::<Marks>(&text).unwrap_or_default(),
            None => Marks::default(),
        };
        // Older than what was seen: the document was removed, or is that of another directory.
        self.marks = match marks.revision < self.seen {
            true => Marks::lost(self.seen),
            false => marks,
        };
        self.marks_stamp = stamp;
        Ok(())
    }

    /// Counts the edits of other programs as changes. Returns `true` if there are any.
    fn absorb(&mut self, disk: &Disk) -> bool {
        let is_usable = |name: &String| {
            let tool = self.tree.tool(name).ok().flatten();
            tool.is_none_or(|tool| read_latest(disk, tool).is_ok())
        };
        let restored = self.unusable.iter().filter(|name| is_usable(name));
        self.restored = restored.cloned().collect();
        let is_changed = self.marks.absorb(&self.tree, &self.restored);
        if is_changed && !self.is_own {
            // They are not saved yet.
            self.marks_stamp = None;
        }
        is_changed
    }

    /// Takes the marks as those that callers see.
    fn settle(&mut self) {
        self.seen = self.marks.revision;
        for name in std::mem::take(&mut self.restored) {
            self.unusable.remove(&name);
        }
    }

    fn save(&mut self, disk: &Disk) -> Result<(), StoreError> {
        disk.replace(MARKS, marks_text(&self.marks)?.as_bytes())?;
        self.marks_stamp = disk.stamp(MARKS)?;
        self.settle();
        Ok(())
    }

    /// Makes a change, and returns the revision. `change` returns `false` if there is nothing to change.
    fn write<T>(
        &mut self,
        disk: &Disk,
        change: impl FnOnce(&mut Staging<'_>, &Self) -> Result<(bool, T), StoreError>,
    ) -> Result<T, StoreError> {
        let Some(_access) = disk.lock_exclusive()? else {
            let message = "it cannot be changed: this process may not write into the directory";
            return Err(StoreError::unavailable(&disk.name, message));
        };
        let result = self.update(disk).and_then(|()| self.stage(disk, change));
        if result.is_err() {
            // What was absorbed is not saved.
            self.marks_stamp = None;
        }
        result
    }

    fn stage<T>(
        &mut self,
        disk: &Disk,
        change: impl FnOnce(&mut Staging<'_>, &Self) -> Result<(bool, T), StoreError>,
    ) -> Result<T, StoreError> {
        let mut staging = Staging::begin(disk)?;
        let (is_changed, result) = change(&mut staging, self)?;
        if !is_changed {
            self.save(disk)?;
            return Ok(result);
        }
        if !disk.is_there(FORMAT_FILE)? {
            staging.file(FORMAT_FILE, format!("{{\"format\": {FORMAT}}}\n").as_bytes())?;
            staging.file(ATTRIBUTES.0, ATTRIBUTES.1.as_bytes())?;
        }
        staging.commit()?;
        // The marks follow the documents: whoever finds documents that differ from their marks counts them as changed.
        self.tree.scan(disk)?;
        self.absorb(disk);
        self.save(disk)?;
        Ok(result)
    }
}

/// Uses of the port.
impl State {
    pub(crate) fn tool(&mut self, disk: &Disk, name: &str) -> Result<Option<ToolRecord>, StoreError> {
        let _access = self.open_tool(disk, name)?;
        Ok(self.tree.tool(name)?.map(|tool| self.record(tool)))
    }

    pub(crate) fn tools(&mut self, disk: &Disk) -> Result<Vec<ToolRecord>, StoreError> {
        let _access = self.open(disk)?;
        let names = self.tree.tools.keys();
        let records = names.filter_map(|name| {
            let tool = self.tree.tool(name).transpose()?;
            Some(tool.map(|tool| self.record(tool)))
        });
        records.collect()
    }

    fn record(&self, tool: &Tool) -> ToolRecord {
        let mut record = tool.record.clone();
        record.revision = self.marks.of_tool(&record.name);
        record
    }

    pub(crate) fn version(
        &mut self,
        disk: &Disk,
        tool: &str,
        version: &semver::Version,
    ) -> Result<Option<StoredVersion>, StoreError> {
        let _access = self.open_tool(disk, tool)?;
        let Some(tool) = self.tree.tool(tool)? else {
            return Ok(None);
        };
        let head = tool.record.version(version);
        head.map(|head| read_version(disk, tool, head)).transpose()
    }

    pub(crate) fn revision(&mut self, disk: &Disk) -> Result<u64, StoreError> {
        let _access = self.open(disk)?;
        Ok(self.marks.revision)
    }

    /// Returns the revision as far as changes of this program tell it: edits of other programs are not looked for.
    pub(crate) fn known_revision(&mut self, disk: &Disk) -> Result<u64, StoreError> {
        let is_known = self.is_loaded && (self.is_own || disk.stamp(MARKS)? == self.marks_stamp);
        match is_known {
            true => Ok(self.marks.revision),
            false => self.revision(disk),
        }
    }

    pub(crate) fn changes(&mut self, disk: &Disk, since: u64) -> Result<StoreChanges, StoreError> {
        let _access = self.open(disk)?;
        let mut changes = StoreChanges::new(self.marks.revision);
        for (name, mark) in &self.marks.tools {
            if mark.revision <= since {
                continue;
            }
            let offered = match self.tree.tool(name) {
                Ok(Some(tool)) => read_latest(disk, tool),
                Ok(None) if since == 0 => continue,
                Ok(None) => Ok(None),
                Err(error) => Err(error),
            };
            let offer = match offered {
                Ok(latest) => OfferedTool::new(name.as_str().into(), latest),
                Err(error) => {
                    self.unusable.insert(name.clone());
                    OfferedTool::unusable(name.as_str().into(), error.to_string())
                }
            };
            changes.tools.push(offer);
        }
        if since == 0 || self.marks.aliases.revision > since {
            changes.aliases = Some(self.tree.aliases()?.into_values().collect());
        }
        changes.servers_changed = self.marks.servers.revision > since;
        Ok(changes)
    }

    pub(crate) fn apply_all(&mut self, disk: &Disk, changes: Vec<ToolChange>) -> Result<u64, StoreError> {
        self.write(disk, |staging, state| {
            operations::apply_all(staging, &state.tree, &state.marks, changes).map(|()| (true, ()))
        })?;
        Ok(self.marks.revision)
    }

    pub(crate) fn aliases(&mut self, disk: &Disk) -> Result<Vec<ToolAlias>, StoreError> {
        let _access = self.open(disk)?;
        Ok(self.tree.aliases()?.into_values().collect())
    }

    pub(crate) fn set_alias(
        &mut self,
        disk: &Disk,
        name: &str,
        target: Option<ToolAlias>,
    ) -> Result<bool, StoreError> {
        self.write(disk, |staging, state| {
            operations::set_alias(staging, &state.tree, name, target).map(|changed| (changed, changed))
        })
    }

    pub(crate) fn servers(&mut self, disk: &Disk) -> Result<Vec<ServerRecord>, StoreError> {
        let _access = self.open(disk)?;
        self.tree.servers()
    }

    pub(crate) fn set_server(
        &mut self,
        disk: &Disk,
        name: &str,
        server: Option<ServerRecord>,
    ) -> Result<bool, StoreError> {
        self.write(disk, |staging, state| {
            operations::set_server(staging, &state.tree, name, server).map(|changed| (changed, changed))
        })
    }
}

fn read_latest(disk: &Disk, tool: &Tool) -> Result<Option<StoredVersion>, StoreError> {
    let head = tool
        .record
        .latest
        .as_ref()
        .and_then(|latest| tool.record.version(latest));
    head.map(|head| read_version(disk, tool, head)).transpose()
}

fn marks_text(marks: &Marks) -> Result<String, StoreError> {
    documents::write(marks).map_err(|error| StoreError::corrupt(format!("`{MARKS}`"), error))
}

fn check_format(disk: &Disk) -> Result<(), StoreError> {
    let Some(text) = disk.read(FORMAT_FILE)? else {
        return Ok(());
    };
    let unusable = |reason| StoreError::corrupt(format!("`{}`", disk.path(FORMAT_FILE).display()), reason);
    let FormatDocument { format } = documents::read(&text).map_err(unusable)?;
    match format {
        ..=FORMAT => Ok(()),
        found => Err(StoreError::Newer { found, known: FORMAT }),
    }
}
