use std::{borrow::Cow, sync::Arc};

use toolplane::{
    View,
    core::{Pattern, Tool},
    manifest::GatewayMode,
};

use super::meta_tools::{MetaTool, definitions};

/// Number of tools from which on a caller is listed the meta-tools: models choose worse among 30 to 50 tools.
const MANY_TOOLS: usize = 15;
/// Size of the definitions, in bytes, from which on a caller is listed the meta-tools: about 2,000 tokens.
const MANY_BYTES: usize = 8_000;

/// Tools that clients are listed.
#[derive(Debug)]
pub(crate) struct Offer {
    mode: GatewayMode,
    pinned: Vec<Pattern>,
    meta_tools: Vec<Arc<Tool>>,
}

impl Offer {
    pub(crate) fn new(mode: GatewayMode, pinned: Vec<Pattern>) -> Self {
        let meta_tools = match mode {
            GatewayMode::List => Vec::new(),
            _ => definitions(),
        };
        Self {
            mode,
            pinned,
            meta_tools,
        }
    }

    /// Returns the meta-tool of this name, unless all tools are listed.
    pub(crate) fn meta_tool(&self, name: &str) -> Option<MetaTool> {
        (self.mode != GatewayMode::List)
            .then(|| MetaTool::from_name(name))
            .flatten()
    }

    /// Returns the tools that a client with this view is listed, in the order of their names.
    pub(crate) fn listed<'a>(&self, view: &'a View) -> Cow<'a, [Arc<Tool>]> {
        let is_list = match self.mode {
            GatewayMode::List => true,
            GatewayMode::Auto => is_small(view.tools()),
            _ => false,
        };
        if is_list {
            return Cow::Borrowed(view.tools());
        }
        let is_listed = |tool: &&Arc<Tool>| {
            self.meta_tool(tool.name()).is_none()
                && self.pinned.iter().any(|pattern| pattern.matches(tool.name()))
        };
        let pinned = view.tools().iter().filter(is_listed).cloned();
        let mut tools: Vec<_> = self.meta_tools.iter().cloned().chain(pinned).collect();
        tools.sort_by(|a, b| a.name().cmp(b.name()));
        Cow::Owned(tools)
    }
}

/// Returns `true` if the tools are better listed directly: there are few of them, or their definitions are short.
fn is_small(tools: &[Arc<Tool>]) -> bool {
    let mut rest = MANY_BYTES;
    let mut is_short = tools.iter().map(|tool| tool.definition().len());
    tools.len() < MANY_TOOLS
        || is_short.all(|size| {
            let fits = size <= rest;
            rest = rest.saturating_sub(size);
            fits
        })
}
