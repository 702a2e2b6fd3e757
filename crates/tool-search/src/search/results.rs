use std::sync::Arc;

use crate::ToolIndex;

/// Results of a search.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct SearchResults {
    /// Found tools, in their order.
    pub hits: Vec<SearchHit>,
    /// Numbers of the queries that no tool fits.
    pub unmatched: Vec<usize>,
    /// Categories near the queries that no tool fits, or the largest ones; empty if every query found something.
    pub nearest: Vec<ToolCategory>,
}

/// Found tool.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SearchHit {
    /// Position of the tool among the documents.
    pub document: usize,
    /// Name of the tool.
    pub name: Arc<str>,
    /// Score, from 0 to 1, by which results of one query compare. A score says little about results of different queries.
    pub score: f32,
    /// `true` if the name or an alias is the query or begins with it.
    pub is_by_name: bool,
    /// Numbers of the queries that found the tool.
    pub queries: Vec<usize>,
}

/// Category of tools, with the number of those that the caller can find.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolCategory {
    /// Kind of the category.
    pub kind: CategoryKind,
    /// Name of the server, tag or capability.
    pub name: Arc<str>,
    /// Number of tools.
    pub n_tools: usize,
}

/// Kind of a category, by which results are filtered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CategoryKind {
    /// Server or source.
    Server,
    /// Tag.
    Tag,
    /// Capability.
    Capability,
    /// Permission that callers need.
    Permission,
}

impl CategoryKind {
    /// All kinds.
    pub const ALL: &'static [Self] = &[Self::Server, Self::Tag, Self::Capability, Self::Permission];

    /// Returns the word for listings.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Tag => "tag",
            Self::Capability => "capability",
            Self::Permission => "permission",
        }
    }
}

impl SearchResults {
    pub(super) fn found(hits: Vec<SearchHit>) -> Self {
        Self {
            hits,
            ..Self::default()
        }
    }
}

impl SearchHit {
    pub(super) fn new(index: &ToolIndex, document: usize, score: f32) -> Self {
        Self {
            document,
            name: index.name(document).clone(),
            score,
            is_by_name: false,
            queries: Vec::new(),
        }
    }
}
