use std::{borrow::Cow, sync::Arc};

use toolplane::{
    View,
    core::{Pattern, Tool},
    manifest::{AuthoringSpec, GatewayMode},
};

use super::meta_tools::{MetaTool, definitions, execute_definition};

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
    /// Meta-tool for everything, if it is offered: to callers who may make tools.
    execute: Option<Arc<Tool>>,
}

impl Offer {
    pub(crate) fn new(mode: GatewayMode, pinned: Vec<Pattern>, has_execute: bool) -> Self {
        let meta_tools = match mode {
            GatewayMode::List => Vec::new(),
            _ => definitions(),
        };
        Self {
            mode,
            pinned,
            meta_tools,
            execute: has_execute.then(execute_definition),
        }
    }

    /// Returns the meta-tool of this name, unless all tools are listed.
    pub(crate) fn meta_tool(&self, name: &str) -> Option<MetaTool> {
        if name == AuthoringSpec::EXECUTE && self.execute.is_some() {
            return Some(MetaTool::Execute);
        }
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
        let makes_tools = || view.tools().iter().any(|tool| is_authoring(tool));
        let execute = self.execute.iter().filter(|_| makes_tools());
        if is_list && self.execute.is_none() {
            return Cow::Borrowed(view.tools());
        }
        // Callers who may make tools are always listed the meta-tools for it.
        let is_listed = |tool: &&Arc<Tool>| {
            self.meta_tool(tool.name()).is_none()
                && (is_list
                    || is_authoring(tool)
                    || self.pinned.iter().any(|pattern| pattern.matches(tool.name())))
        };
        let listed = view.tools().iter().filter(is_listed).chain(execute).cloned();
        let meta_tools = self.meta_tools.iter().filter(|_| !is_list).cloned();
        let mut tools: Vec<_> = meta_tools.chain(listed).collect();
        tools.sort_by(|a, b| a.name().cmp(b.name()));
        Cow::Owned(tools)
    }
}

/// Returns `true` for a meta-tool by which agents make tools.
fn is_authoring(tool: &Tool) -> bool {
    AuthoringSpec::META_TOOLS.contains(&&**tool.name())
        && tool.descriptor().executor.kind == AuthoringSpec::KIND
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
