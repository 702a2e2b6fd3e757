//! Format of a file of cached lists.

use std::collections::HashMap;

use mcp_client::{PageLimits, ServerInfo};
use mcp_wire::Revision;
use raw_json::{JsonKind, JsonLimits, RawJson};
use tool_core::Feature;

use super::{CachedLists, ListCacheKey};

/// Identifies the format and its version.
const FORMAT: &str = "dev.toolplane/kept-lists/1";

/// Writes lists as the text of a file.
pub(super) fn write(key: &ListCacheKey, kept: &CachedLists) -> String {
    let mut text = String::new();
    let mut member = |open: &str, name: &str, value: &str| {
        text.push_str(open);
        text.push_str(RawJson::from(name).as_str());
        text.push(':');
        text.push_str(value);
    };
    let info = &kept.server;
    member("{", "format", RawJson::from(FORMAT).as_str());
    member(",", "server", RawJson::from(key.server()).as_str());
    member(",", "digest", RawJson::from(key.digest()).as_str());
    member(",", "revision", RawJson::from(info.revision.as_str()).as_str());
    member(",", "capabilities", info.capabilities.as_str());
    if let Some(implementation) = &info.implementation {
        member(",", "serverInfo", implementation.as_str());
    }
    if let Some(instructions) = &info.instructions {
        member(",", "instructions", instructions.as_str());
    }
    for &feature in Feature::ALL {
        let Some(entries) = kept.lists.get(&feature) else {
            continue;
        };
        let entries: Vec<&str> = entries.iter().map(RawJson::as_str).collect();
        member(",", member_of(feature), &format!("[{}]", entries.join(",")));
    }
    text.push('}');
    text
}

/// Reads the text of a file that should hold the lists of this key.
///
/// # Errors
/// The first problem, as a fragment.
pub(super) fn read(key: &ListCacheKey, text: Vec<u8>) -> Result<CachedLists, String> {
    // As permissive as the wire: whatever a server may list may be cached.
    let file = RawJson::parse_within(text, JsonLimits::RELAY).map_err(|error| error.to_string())?;
    // A few members, of which some are long: they are searched once.
    let members: Vec<_> = file.as_part().parts().collect();
    let member = |name: &str| {
        let mut members = members.iter();
        members.find(|(known, _)| known == name).map(|(_, value)| *value)
    };
    let is = |name: &str, expected: &str| {
        let found = member(name).and_then(|value| value.text());
        match found.as_deref() == Some(expected) {
            true => Ok(()),
            false => Err(format!("its `{name}` is not `{expected}`")),
        }
    };
    is("format", FORMAT)?;
    is("server", key.server())?;
    is("digest", key.digest())?;
    let of_kind = |name: &str, kind: JsonKind| match member(name) {
        Some(value) if value.kind() == kind => Ok(Some(value.to_raw())),
        Some(_) => Err(format!("its `{name}` is of another type")),
        None => Ok(None),
    };
    let missing = |name: &str| format!("it has no `{name}`");
    let revision = of_kind("revision", JsonKind::String)?.and_then(|revision| revision.string());
    let revision = revision.ok_or_else(|| missing("revision"))?;
    let revision: Revision = revision
        .parse()
        .map_err(|_| "its `revision` is not known".to_owned())?;
    let mut info = ServerInfo::new(revision);
    info.capabilities = of_kind("capabilities", JsonKind::Object)?.ok_or_else(|| missing("capabilities"))?;
    info.implementation = of_kind("serverInfo", JsonKind::Object)?;
    info.instructions = of_kind("instructions", JsonKind::String)?;
    let mut lists = HashMap::new();
    for &feature in Feature::ALL {
        let Some(list) = of_kind(member_of(feature), JsonKind::Array)? else {
            continue;
        };
        let most = PageLimits::default().entries;
        let entries: Vec<_> = list.items().take(most + 1).collect();
        if entries.len() > most {
            return Err(format!("its `{}` are too many", member_of(feature)));
        }
        lists.insert(feature, entries);
    }
    if !lists.contains_key(&Feature::Tool) {
        return Err(missing("tools"));
    }
    Ok(CachedLists::new(info, lists))
}

/// Returns the member that holds the list of this feature.
fn member_of(feature: Feature) -> &'static str {
    match feature {
        Feature::Prompt => "prompts",
        Feature::Resource => "resources",
        Feature::ResourceTemplate => "resourceTemplates",
        _ => "tools",
    }
}
