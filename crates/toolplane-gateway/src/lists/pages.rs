use std::{collections::HashMap, sync::Arc};

use mcp_wire::{Era, RpcError, code, method};
use parking_lot::Mutex;
use raw_json::{JsonKind, JsonLimits, RawJson};
use toolplane::{
    Toolplane, View,
    core::{Caller, Feature, Tool},
};

/// Pages of `tools/list` and the other lists. Callers that see the same list share one rendered page.
#[derive(Debug)]
pub(crate) struct ListPages {
    page_size: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Rendered pages, oldest first.
    rendered: Vec<RenderedPage>,
    /// Oldest revision of each list that some client may still have.
    oldest: HashMap<Feature, u64>,
}

#[derive(Debug)]
struct RenderedPage {
    key: PageKey,
    page: RawJson,
}

/// Everything that the content of a page depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PageKey {
    feature: Feature,
    revision: u64,
    era: Era,
    caller: Arc<Caller>,
    /// Number of items before the page.
    start: usize,
    /// Generation of the known secrets, which are redacted in the page.
    secrets: u64,
}

/// Request for a page of a list.
pub(crate) struct ListRequest<'a> {
    pub(crate) feature: Feature,
    pub(crate) view: &'a View,
    /// Listed items of the view, in the order of their names. They follow from the view.
    pub(crate) items: &'a [Arc<Tool>],
    pub(crate) caller: &'a Arc<Caller>,
    pub(crate) params: Option<&'a RawJson>,
    pub(crate) era: Era,
}

/// Maximum number of rendered pages. The oldest one is evicted first.
const MAX_RENDERED: usize = 64;
/// Prefix of a cursor, in front of the name of the last item of the page before. A cursor is a position in the order of
/// names, so that a change of the list between two pages neither hides an item nor shows one twice.
const CURSOR: &str = "after.";

impl ListPages {
    pub(crate) fn new(page_size: usize) -> Self {
        Self {
            page_size: page_size.max(1),
            state: Mutex::default(),
        }
    }

    /// Assumes that a client has the lists of this view, for example from the process that served it before. The client is
    /// notified of later changes.
    pub(crate) fn assume_seen(&self, view: &View) {
        let mut state = self.state.lock();
        for &feature in Feature::ALL {
            state.oldest.entry(feature).or_insert(view.revision_of(feature));
        }
    }

    /// Returns the page of a list that the parameters of a request ask for.
    pub(crate) fn page(&self, plane: &Toolplane, wanted: &ListRequest<'_>) -> Result<RawJson, RpcError> {
        let &ListRequest {
            feature,
            view,
            items,
            caller,
            params,
            era,
        } = wanted;
        let cursor = params.and_then(|params| params.get("cursor"));
        let start = match cursor.filter(|cursor| cursor.kind() != JsonKind::Null) {
            Some(cursor) => start_after(items, &cursor)?,
            None => 0,
        };
        let key = PageKey {
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
            // The list of a single client is requested too rarely to be kept.
            drop(state);
            let page = render(feature, &items[start..], self.page_size, era);
            return Ok(plane.hide_secrets(&page).unwrap_or(page));
        }
        let rendered = &mut state.rendered;
        if let Some(known) = rendered.iter().find(|known| known.key == key) {
            return Ok(known.page.clone());
        }
        let page = render(feature, &items[start..], self.page_size, era);
        // Lists of servers were redacted when they were read. More secrets may have become known since.
        let page = plane.hide_secrets(&page).unwrap_or(page);
        // Older lists are not requested again.
        rendered.retain(|known| {
            let is_newer = known.key.revision >= key.revision && known.key.secrets >= key.secrets;
            known.key.feature != feature || is_newer
        });
        if rendered.len() >= MAX_RENDERED {
            rendered.remove(0);
        }
        rendered.push(RenderedPage {
            key,
            page: page.clone(),
        });
        Ok(page)
    }

    /// Returns the notifications to send now that the lists are as in this view: those of lists that some client has in an
    /// older revision.
    ///
    /// A client that waits for its first list has no older revision. It is not notified of the servers that start for it.
    pub(crate) fn take_changes(&self, view: &View) -> Vec<&'static str> {
        let mut state = self.state.lock();
        let mut changed = Vec::new();
        for &feature in Feature::ALL {
            let revision = view.revision_of(feature);
            let Some(oldest) = state
                .oldest
                .get_mut(&feature)
                .filter(|oldest| **oldest < revision)
            else {
                continue;
            };
            *oldest = revision;
            changed.push(feature);
        }
        changed_notifications(&changed)
    }
}

/// Returns the methods of the notifications that these lists have changed. Resources and resource templates share one.
pub(crate) fn changed_notifications(changed: &[Feature]) -> Vec<&'static str> {
    let mut notifications: Vec<_> = changed.iter().map(|&feature| protocol_names(feature).1).collect();
    notifications.dedup();
    notifications
}

/// Returns the member of a result that holds a list of this feature, and the method of the notification of its change.
fn protocol_names(feature: Feature) -> (&'static str, &'static str) {
    match feature {
        Feature::Prompt => ("prompts", method::PROMPTS_LIST_CHANGED),
        Feature::Resource => ("resources", method::RESOURCES_LIST_CHANGED),
        Feature::ResourceTemplate => ("resourceTemplates", method::RESOURCES_LIST_CHANGED),
        _ => ("tools", method::TOOLS_LIST_CHANGED),
    }
}

/// Returns the number of items up to and including the position of a cursor.
fn start_after(items: &[Arc<Tool>], cursor: &RawJson) -> Result<usize, RpcError> {
    let cursor = cursor.string();
    let after = cursor.as_deref().and_then(|cursor| cursor.strip_prefix(CURSOR));
    let after = after.ok_or_else(|| RpcError::new(code::INVALID_PARAMS, "unknown `cursor`"))?;
    Ok(items.partition_point(|item| &**item.name() <= after))
}

/// Renders one page: the definitions of the first items, which are in the order of their names.
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
    let limits = JsonLimits::RELAY.with_depth(usize::MAX);
    let list = RawJson::parse_within(list, limits).expect("every definition is JSON");
    let mut members = vec![(protocol_names(feature).0, list)];
    if let (Some(last), false) = (page.last(), rest.is_empty()) {
        members.push(("nextCursor", RawJson::from(&*format!("{CURSOR}{}", last.name()))));
    }
    if era == Era::Modern {
        members.extend(members_of_modern_lists());
    }
    RawJson::from_members(&members)
}

/// Returns the members that a page of a list has in the modern era only.
pub(super) fn members_of_modern_lists() -> [(&'static str, RawJson); 2] {
    // Lists depend on the caller, and servers may change theirs at any time.
    [
        ("ttlMs", RawJson::from(0_u64)),
        ("cacheScope", RawJson::from("private")),
    ]
}
