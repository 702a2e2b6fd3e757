use std::sync::{Arc, Mutex, PoisonError};

use mcp_server::Answer;
use mcp_wire::{Era, RpcError, code};
use raw_json::{Kind, Limits, RawJson};
use toolplane::{
    View,
    core::{Caller, Tool},
};

/// The pages of `tools/list`, each rendered once for what callers see the same.
#[derive(Debug)]
pub(crate) struct Lists {
    page_size: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    rendered: Vec<Rendered>,
    /// The oldest revision that some client may still take for the present one.
    oldest: Option<u64>,
}

#[derive(Debug)]
struct Rendered {
    key: Key,
    page: RawJson,
}

/// What makes a page what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    revision: u64,
    era: Era,
    caller: Arc<Caller>,
    /// How many tools come before the page.
    start: usize,
}

/// How many pages are kept: the oldest goes first.
const MAX_RENDERED: usize = 64;
/// What a cursor begins with, before the name of the last tool on the page that it follows. It points to a place
/// among the names, so a change of the tools between two pages neither hides a tool nor shows one twice.
const CURSOR: &str = "after.";

impl Lists {
    pub(crate) fn new(page_size: usize) -> Self {
        Self {
            page_size: page_size.max(1),
            state: Mutex::default(),
        }
    }

    /// The page that a request asks for.
    pub(crate) fn page(
        &self,
        view: &View,
        caller: &Arc<Caller>,
        params: Option<&RawJson>,
        era: Era,
    ) -> Result<Answer, RpcError> {
        let cursor = params.and_then(|params| params.get("cursor"));
        let start = match cursor.filter(|cursor| cursor.kind() != Kind::Null) {
            Some(cursor) => start(view.tools(), &cursor)?,
            None => 0,
        };
        let key = Key {
            revision: view.revision(),
            era,
            caller: Arc::clone(caller),
            start,
        };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.oldest = Some(
            state
                .oldest
                .map_or(key.revision, |oldest| oldest.min(key.revision)),
        );
        let rendered = &mut state.rendered;
        if let Some(known) = rendered.iter().find(|known| known.key == key) {
            return Ok(Answer::untyped(known.page.clone()));
        }
        let page = render(&view.tools()[start..], self.page_size, era);
        // Nobody asks for an older list again.
        rendered.retain(|known| known.key.revision >= key.revision);
        if rendered.len() >= MAX_RENDERED {
            rendered.remove(0);
        }
        rendered.push(Rendered {
            key,
            page: page.clone(),
        });
        Ok(Answer::untyped(page))
    }
}

impl Lists {
    /// Whether clients must be told that the tools are at this revision now: some have a list that is older.
    ///
    /// Servers that start when a list is first asked for are no news to the client that waits for it.
    pub(crate) fn is_news(&self, revision: u64) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = state.oldest.is_some_and(|oldest| oldest < revision);
        if is_news {
            state.oldest = Some(revision);
        }
        is_news
    }
}

/// How many tools come before the page after a cursor.
fn start(tools: &[Arc<Tool>], cursor: &RawJson) -> Result<usize, RpcError> {
    let cursor = cursor.string();
    let after = cursor.as_deref().and_then(|cursor| cursor.strip_prefix(CURSOR));
    let after = after.ok_or_else(|| RpcError::new(code::INVALID_PARAMS, "unknown `cursor`"))?;
    Ok(tools.partition_point(|tool| &**tool.name() <= after))
}

/// One page: the definitions of the tools in the order of their names.
fn render(tools: &[Arc<Tool>], page_size: usize, era: Era) -> RawJson {
    let (page, rest) = tools.split_at(page_size.min(tools.len()));
    let size: usize = page.iter().map(|tool| tool.definition().len() + 1).sum();
    let mut list = String::with_capacity(size + 2);
    list.push('[');
    for (index, tool) in page.iter().enumerate() {
        list.push_str(if index == 0 { "" } else { "," });
        list.push_str(tool.definition().as_str());
    }
    list.push(']');
    let limits = Limits {
        depth: usize::MAX,
        ..Limits::RELAY
    };
    let list = RawJson::parse_within(list, limits).expect("every definition is JSON");
    let mut members = vec![("tools", list)];
    if let (Some(last), false) = (page.last(), rest.is_empty()) {
        members.push(("nextCursor", RawJson::from(&*format!("{CURSOR}{}", last.name()))));
    }
    if era == Era::Modern {
        // What is listed depends on who asks, and servers may change it at any time.
        members.push(("ttlMs", RawJson::from(0_u64)));
        members.push(("cacheScope", RawJson::from("private")));
    }
    crate::render::object(&members)
}
