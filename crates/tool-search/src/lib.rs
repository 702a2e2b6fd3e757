//! Search over tool definitions, for agents that choose from more tools than fit into a prompt.
//!
//! A [`ToolIndex`] ranks tools by BM25F over their names, descriptions, parameters, servers, tags, capabilities, aliases and
//! examples. Words are split at underscores and capitals, and reduced to their stems. A tool whose name is the query comes
//! first. A search may have several queries, whose results are interleaved, and filters. If no tool fits a query, the results
//! say so and name the nearest categories, instead of tools that do not fit.
//!
//! Two signals are optional: queries that led to successful calls ([`UsageLog`]), and vectors of a language model
//! ([`ToolVectors`]).
//!
//! # Examples
//! ```
//! use tool_search::{SearchRequest, SearchScope, ToolDocument, ToolIndex};
//!
//! let mut issue = ToolDocument::new("github__create_issue");
//! issue.description = "Opens an issue in a repository.".to_owned();
//! let mut weather = ToolDocument::new("get_weather");
//! weather.description = "The weather at a place.".to_owned();
//! weather.tags = vec!["outdoors".to_owned()];
//! let index = ToolIndex::build([issue, weather]);
//!
//! let request = SearchRequest::new("open issues in repositories").query("is it raining? weather");
//! let results = index.search(&request, &SearchScope::default());
//! assert_eq!(&*results.hits[0].name, "github__create_issue");
//! assert_eq!(&*results.hits[1].name, "get_weather");
//!
//! let results = index.search(&SearchRequest::new("transfer money"), &SearchScope::default());
//! assert!(results.hits.is_empty());
//! assert_eq!(&*results.nearest[0].name, "outdoors");
//! ```

mod document;
mod index;
mod search;
mod signature;
mod text;
mod usage;
mod vectors;

pub use raw_json;

pub use self::{
    document::{ToolDocument, ToolParameter},
    index::{FieldWeights, ToolIndex},
    search::{
        CategoryKind, MeasuredTool, SearchFilter, SearchHit, SearchOrder, SearchRequest, SearchResults,
        SearchScope, ToolCategory,
    },
    signature::signature,
    text::{stem, tokens},
    usage::{MemoryUsageLog, UsageIndex, UsageLog, UsageRecord},
    vectors::ToolVectors,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
