//! Changes of tools, aliases and servers.

use std::collections::BTreeMap;

use semver::Version;
use tool_registry::{
    ServerRecord, StoreError, StoreOperation, StoredVersion, ToolAlias, ToolChange, ToolRecord, VersionHead,
    VersionState,
};

use crate::{
    content::{stage, tool_document, version_folder},
    documents::{Document, Tool},
    journal::Staging,
    marks::Marks,
    tree::{ALIASES, Tree, server_document},
};

/// Adds changes of tools to a change of the directory.
pub(crate) fn apply_all(
    staging: &mut Staging<'_>,
    tree: &Tree,
    marks: &Marks,
    changes: Vec<ToolChange>,
) -> Result<(), StoreError> {
    let revision = marks.revision + 1;
    let mut changed: BTreeMap<String, Tool> = BTreeMap::new();
    for change in changes {
        let name = &*change.tool;
        let present = tree.tool(name)?;
        let known = match (changed.contains_key(name), present) {
            (true, _) => revision,
            (false, Some(_)) => marks.of_tool(name),
            (false, None) => 0,
        };
        if known != change.expected {
            return Err(StoreError::Conflict {
                tool: name.to_owned(),
            });
        }
        let mut tool = changed
            .remove(name)
            .or_else(|| present.map(|tool| (**tool).clone()));
        for operation in change.operations {
            apply(staging, name, &mut tool, operation)?;
        }
        if let Some(tool) = tool {
            check_latest(name, &tool)?;
            changed.insert(name.to_owned(), tool);
        }
    }
    for (name, tool) in &changed {
        staging.file(tool_document(name), text(tool, name)?.as_bytes())?;
    }
    Ok(())
}

/// Checks that the latest version is a published one.
fn check_latest(name: &str, tool: &Tool) -> Result<(), StoreError> {
    let Some(latest) = &tool.record.latest else {
        return Ok(());
    };
    match tool.record.version(latest) {
        Some(head) if head.state != VersionState::Draft => Ok(()),
        _ => Err(StoreError::corrupt(
            format!("a change of `{name}`"),
            "its latest version would not be a published one",
        )),
    }
}

fn apply(
    staging: &mut Staging<'_>,
    name: &str,
    tool: &mut Option<Tool>,
    operation: StoreOperation,
) -> Result<(), StoreError> {
    let invalid = |reason: &str| StoreError::corrupt(format!("a change of `{name}`"), reason);
    let tool = match (operation, tool) {
        (StoreOperation::Create { .. }, Some(_)) => return Err(invalid("there is such a tool already")),
        (StoreOperation::Create { owner }, tool) => {
            *tool = Some(Tool {
                record: ToolRecord::new(name.into(), owner, 0),
                contents: BTreeMap::new(),
            });
            return Ok(());
        }
        (_, None) => return Err(invalid("there is no such tool")),
        (operation, Some(tool)) => (operation, tool),
    };
    let (operation, tool) = tool;
    let record = &mut tool.record;
    match operation {
        StoreOperation::Put(stored) => return put(staging, tool, &stored),
        StoreOperation::SetState { version, state } => {
            let head = record.versions.iter_mut().find(|head| head.version == version);
            head.ok_or_else(|| invalid("there is no such version"))?.state = state;
        }
        StoreOperation::SetAgent { version, agent } => {
            let head = record.versions.iter_mut().find(|head| head.version == version);
            head.ok_or_else(|| invalid("there is no such version"))?.agent = Some(agent);
        }
        StoreOperation::SetLatest(change) => {
            record.latest.clone_from(&change.version);
            record.history.push(change);
        }
        StoreOperation::PopLatest => {
            record.history.pop();
            record.latest = record.history.last().and_then(|change| change.version.clone());
        }
        StoreOperation::RemoveDraft { version } => {
            let is_draft = |head: &VersionHead| head.version == version && head.state == VersionState::Draft;
            let at = record.versions.iter().position(is_draft);
            record
                .versions
                .remove(at.ok_or_else(|| invalid("there is no such draft"))?);
            tool.contents.remove(&version);
            staging.remove(version_folder(name, &version));
        }
        _ => return Err(invalid("this store does not know the operation")),
    }
    Ok(())
}

/// Adds a version, or replaces a draft.
fn put(staging: &mut Staging<'_>, tool: &mut Tool, stored: &StoredVersion) -> Result<(), StoreError> {
    let (name, version) = (tool.record.name.clone(), &stored.head.version);
    let versions = &mut tool.record.versions;
    match versions.iter().position(|head| head.version == *version) {
        Some(at) if versions[at].state == VersionState::Draft => versions[at] = stored.head.clone(),
        Some(_) => {
            return Err(StoreError::corrupt(
                format!("a change of `{name}`"),
                "a published version does not change",
            ));
        }
        None => {
            versions.push(stored.head.clone());
            versions.sort_by(|a, b| a.version.cmp(&b.version));
        }
    }
    let content = stage(staging, &name, stored)?;
    tool.contents.insert(Version::clone(version), content);
    Ok(())
}

/// Adds an alias, or its removal, to a change. Returns `false` if there is nothing to remove.
pub(crate) fn set_alias(
    staging: &mut Staging<'_>,
    tree: &Tree,
    name: &str,
    target: Option<ToolAlias>,
) -> Result<bool, StoreError> {
    let mut aliases = tree.aliases()?;
    let is_changed = match target {
        Some(target) => {
            aliases.insert(name.to_owned(), target);
            true
        }
        None => aliases.remove(name).is_some(),
    };
    if is_changed {
        staging.file(ALIASES, text(&aliases, ALIASES)?.as_bytes())?;
    }
    Ok(is_changed)
}

/// Adds a server, or its removal, to a change. Returns `false` if there is nothing to remove.
pub(crate) fn set_server(
    staging: &mut Staging<'_>,
    tree: &Tree,
    name: &str,
    server: Option<ServerRecord>,
) -> Result<bool, StoreError> {
    let path = server_document(name);
    let known = tree.servers.get(name);
    match server {
        Some(mut server) => {
            if let Some(known) = tree.server(name)? {
                server.created_at = known.created_at;
            }
            staging.file(path, text(&server, name)?.as_bytes())?;
        }
        None if known.is_none() => return Ok(false),
        None => staging.remove(path),
    }
    Ok(true)
}

fn text<T: Document>(document: &T, name: &str) -> Result<String, StoreError> {
    document
        .to_text()
        .map_err(|error| StoreError::corrupt(format!("`{name}`"), error))
}
