//! Arguments of the meta-tools.

use raw_json::{JsonKind, RawJson};
use serde::{Deserialize, de::DeserializeOwned};
use toolplane::{
    core::{ErrorKind, ToolError},
    search::{SearchFilter, SearchOrder, SearchRequest},
};

/// Arguments of `tool_search`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SearchArguments {
    query: Option<String>,
    queries: Vec<String>,
    server: Option<String>,
    tag: Option<String>,
    capability: Option<String>,
    permission: Option<String>,
    sort: Option<SortWord>,
    limit: Option<usize>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SortWord {
    Relevance,
    Sla,
    Latency,
}

/// Arguments of `tool_describe`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DescribeArguments {
    pub(super) names: Vec<String>,
}

/// Target that the arguments of `tool_call` name.
#[derive(Debug, Clone)]
pub(crate) struct IndirectTarget {
    pub(crate) name: String,
    pub(crate) arguments: Option<RawJson>,
}

/// Maximum number of tools that are described at once.
const MAX_DESCRIBED: usize = 20;
/// Number of results for each query, if the arguments do not say.
const PER_QUERY: usize = 3;

impl SearchArguments {
    pub(super) fn read(arguments: Option<&RawJson>) -> Result<Self, ToolError> {
        let read: Self = read(arguments)?;
        let filters = [&read.server, &read.tag, &read.capability, &read.permission];
        let has_filter = filters.into_iter().any(Option::is_some);
        if read.query.is_none() && read.queries.is_empty() && !has_filter {
            return Err(invalid(
                "missing required property `query`, or `queries`, or a filter",
            ));
        }
        Ok(read)
    }

    pub(super) fn request(self) -> SearchRequest {
        let mut filter = SearchFilter::default();
        filter.servers.extend(self.server);
        filter.tags.extend(self.tag);
        filter.capabilities.extend(self.capability);
        filter.permissions.extend(self.permission);
        let order = match self.sort {
            None | Some(SortWord::Relevance) => SearchOrder::Relevance,
            Some(SortWord::Sla) => SearchOrder::Sla,
            Some(SortWord::Latency) => SearchOrder::Latency,
        };
        let queries = self.query.into_iter().chain(self.queries);
        let request = queries
            .fold(SearchRequest::all(), SearchRequest::query)
            .filter(filter)
            .order(order);
        let n_queries = request.queries().len();
        match self.limit {
            Some(limit) => request.limit(limit),
            None if n_queries > 1 => request.limit((n_queries * PER_QUERY).max(8)),
            None => request,
        }
    }
}

impl DescribeArguments {
    pub(super) fn read(arguments: Option<&RawJson>) -> Result<Self, ToolError> {
        let read: Self = read(arguments)?;
        match read.names.len() {
            0 => Err(invalid("`names` must name at least one tool")),
            1..=MAX_DESCRIBED => Ok(read),
            n => Err(invalid(&format!(
                "`names` has {n} tools; at most {MAX_DESCRIBED} are described at once"
            ))),
        }
    }
}

impl IndirectTarget {
    /// Reads the arguments of `tool_call`. Those of the named tool keep their bytes.
    pub(crate) fn read(arguments: Option<&RawJson>) -> Result<Self, ToolError> {
        let (mut name, mut of_tool) = (None, None);
        for (key, value) in arguments.iter().flat_map(|arguments| arguments.parts()) {
            match &*key {
                "name" => name = Some(value),
                "arguments" if value.kind() == JsonKind::Null => {}
                "arguments" if value.kind() == JsonKind::Object => of_tool = Some(value.to_raw()),
                "arguments" => return Err(invalid("`arguments` must be an object")),
                other => {
                    return Err(invalid(&format!(
                        "unknown property `{other}`; there are `name` and `arguments`"
                    )));
                }
            }
        }
        let name = name.ok_or_else(|| invalid("missing required property `name`"))?;
        let name = name.text().ok_or_else(|| invalid("`name` must be a string"))?;
        Ok(Self {
            name: name.into_owned(),
            arguments: of_tool,
        })
    }
}

fn read<T: DeserializeOwned>(arguments: Option<&RawJson>) -> Result<T, ToolError> {
    let text = arguments.map_or("{}", RawJson::as_str);
    serde_json::from_str(text).map_err(|error| invalid(&error.to_string()))
}

fn invalid(message: &str) -> ToolError {
    ToolError::new(ErrorKind::InvalidArguments, message)
}
