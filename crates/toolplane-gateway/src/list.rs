use std::{collections::HashMap, sync::Arc};

use mcp_wire::{Era, RpcError, code, method};
use parking_lot::Mutex;
use raw_json::{JsonKind, JsonLimits, RawJson};
use toolplane::{
    Toolplane, View,
    core::{Caller, Feature, Tool},
};

/// The pages of `tools/list` and the other lists, each rendered once for what callers see the same.
#[derive(Debug)]
pub(crate) struct Lists {
    page_size: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    rendered: Vec<Rendered>,
    /// The oldest revision of each list that some client may still take for the present one.
    oldest: HashMap<Feature, u64>,
}

#[derive(Debug)]
struct Rendered {
    key: Key,
    page: RawJson,
}

/// What makes a page what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    feature: Feature,
    revision: u64,
    era: Era,
    caller: Arc<Caller>,
    /// How many items come before the page.
    start: usize,
    /// Which secrets are hidden.
    secrets: u64,
}

/// How many pages are kept: the oldest goes first.
const MAX_RENDERED: usize = 64;
/// What a cursor begins with, before the name of the last item on the page that it follows. It points to a place
/// among the names, so a change of the list between two pages neither hides an item nor shows one twice.
const CURSOR: &str = "after.";

impl Lists {
    /// Takes note of a client that may have the lists as they are now, from whoever served it before: changes from here
    /// on are news to it.
    pub(crate) fn assume_seen(&self, view: &View) {
        let mut state = self.state.lock();
        for feature in Feature::ALL {
            state.oldest.entry(feature).or_insert(view.revision_of(feature));
        }
    }

    pub(crate) fn new(page_size: usize) -> Self {
        Self {
            page_size: page_size.max(1),
            state: Mutex::default(),
        }
    }

    /// The page of a list that a request asks for.
    pub(crate) fn page(
        &self,
        plane: &Toolplane,
        feature: Feature,
        view: &View,
        caller: &Arc<Caller>,
        params: Option<&RawJson>,
        era: Era,
    ) -> Result<RawJson, RpcError> {
        let cursor = params.and_then(|params| params.get("cursor"));
        let start = match cursor.filter(|cursor| cursor.kind() != JsonKind::Null) {
            Some(cursor) => start(view.list(feature), &cursor)?,
            None => 0,
        };
        let key = Key {
            feature,
            revision: view.revision_of(feature),
            era,
            caller: Arc::clone(caller),
            start,
            secrets: plane.secrets_generation(),
        };
        let mut state = self.state.lock();
        let oldest = state.oldest.entry(feature).or_insert(key.revision);
        *oldest = key.revision.min(*oldest);
        if view.scope() != 0 {
            // Of one client, and seldom asked for.
            drop(state);
            let page = render(feature, &view.list(feature)[start..], self.page_size, era);
            return Ok(plane.hide_secrets(&page).unwrap_or(page));
        }
        let rendered = &mut state.rendered;
        if let Some(known) = rendered.iter().find(|known| known.key == key) {
            return Ok(known.page.clone());
        }
        let page = render(feature, &view.list(feature)[start..], self.page_size, era);
        // Servers' lists have none that were known when they were read; others may be known since.
        let page = plane.hide_secrets(&page).unwrap_or(page);
        // Nobody asks for an older list again.
        rendered.retain(|known| {
            let is_newer = known.key.revision >= key.revision && known.key.secrets >= key.secrets;
            known.key.feature != feature || is_newer
        });
        if rendered.len() >= MAX_RENDERED {
            rendered.remove(0);
        }
        rendered.push(Rendered {
            key,
            page: page.clone(),
        });
        Ok(page)
    }
}

impl Lists {
    /// The notifications that clients must be sent now that the lists are as in this view: some client has one that is
    /// older.
    ///
    /// Servers that start when a list is first asked for are no news to the client that waits for it.
    pub(crate) fn news(&self, view: &View) -> Vec<&'static str> {
        let mut state = self.state.lock();
        let mut news = Vec::new();
        for feature in Feature::ALL {
            let revision = view.revision_of(feature);
            let Some(oldest) = state
                .oldest
                .get_mut(&feature)
                .filter(|oldest| **oldest < revision)
            else {
                continue;
            };
            *oldest = revision;
            news.push(feature);
        }
        notifications(&news)
    }
}

/// The notifications that these lists have changed. Resources and their templates share one.
pub(crate) fn notifications(changed: &[Feature]) -> Vec<&'static str> {
    let mut notifications: Vec<_> = changed.iter().map(|&feature| words(feature).1).collect();
    notifications.dedup();
    notifications
}

/// The member of a result that holds a list of this kind, and the notification of its change.
fn words(feature: Feature) -> (&'static str, &'static str) {
    match feature {
        Feature::Prompt => ("prompts", method::PROMPTS_LIST_CHANGED),
        Feature::Resource => ("resources", method::RESOURCES_LIST_CHANGED),
        Feature::ResourceTemplate => ("resourceTemplates", method::RESOURCES_LIST_CHANGED),
        _ => ("tools", method::TOOLS_LIST_CHANGED),
    }
}

/// How many items come before the page after a cursor.
fn start(items: &[Arc<Tool>], cursor: &RawJson) -> Result<usize, RpcError> {
    let cursor = cursor.string();
    let after = cursor.as_deref().and_then(|cursor| cursor.strip_prefix(CURSOR));
    let after = after.ok_or_else(|| RpcError::new(code::INVALID_PARAMS, "unknown `cursor`"))?;
    Ok(items.partition_point(|item| &**item.name() <= after))
}

/// One page: the definitions in the order of their names.
fn render(feature: Feature, items: &[Arc<Tool>], page_size: usize, era: Era) -> RawJson {
    let (page, rest) = items.split_at(page_size.min(items.len()));
    let size: usize = page.iter().map(|item| item.definition().len() + 1).sum();
    let mut list = String::with_capacity(size + 2);
    list.push('[');
    for (index, item) in page.iter().enumerate() {
        list.push_str(if index == 0 { "" } else { "," });
        list.push_str(item.definition().as_str());
    }
    list.push(']');
    let limits = JsonLimits {
        depth: usize::MAX,
        ..JsonLimits::RELAY
    };
    let list = RawJson::parse_within(list, limits).expect("every definition is JSON");
    let mut members = vec![(words(feature).0, list)];
    if let (Some(last), false) = (page.last(), rest.is_empty()) {
        members.push(("nextCursor", RawJson::from(&*format!("{CURSOR}{}", last.name()))));
    }
    if era == Era::Modern {
        // What is listed depends on who asks, and servers may change it at any time.
        members.push(("ttlMs", RawJson::from(0_u64)));
        members.push(("cacheScope", RawJson::from("private")));
    }
    RawJson::from_members(&members)
}
