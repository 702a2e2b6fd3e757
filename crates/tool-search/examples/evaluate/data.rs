//! Tools and queries of a folder.

use std::{error::Error, fs, path::Path};

use serde_json::Value;
use tool_search::{ToolDocument, raw_json::RawJson};

pub(crate) type Failure = Box<dyn Error>;

/// Sources whose queries are ranked among the tools of another source.
const POOLS: [(&str, &str); 1] = [("livemcp_agent", "livemcpbench")];

pub(crate) struct Tool {
    pub(crate) id: String,
    pub(crate) source: String,
    pub(crate) document: ToolDocument,
}

pub(crate) struct Query {
    pub(crate) text: String,
    pub(crate) relevant: Vec<String>,
    pub(crate) source: String,
}

impl Query {
    /// Returns the source among whose tools the query is ranked.
    pub(crate) fn pool(&self) -> &str {
        let other = POOLS.iter().find(|(queries, _)| *queries == self.source);
        other.map_or(&self.source, |(_, tools)| tools)
    }
}

/// Reads the tools and queries of a folder.
pub(crate) fn read(folder: &Path) -> Result<(Vec<Tool>, Vec<Query>), Failure> {
    let tools = lines(&folder.join("tools.jsonl"), tool)?;
    let queries = lines(&folder.join("queries.jsonl"), query)?;
    Ok((tools, queries))
}

/// Reads a file with one JSON object in each line.
fn lines<T>(file: &Path, read: fn(&Value) -> Option<T>) -> Result<Vec<T>, Failure> {
    let text =
        fs::read_to_string(file).map_err(|error| format!("failed to read `{}`: {error}", file.display()))?;
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty());
    let row = |(number, line): (usize, &str)| {
        let value: Value =
            serde_json::from_str(line).map_err(|error| format!("line {}: {error}", number + 1))?;
        read(&value).ok_or_else(|| format!("line {}: a member is missing", number + 1))
    };
    let rows: Result<Vec<_>, String> = lines.map(row).collect();
    rows.map_err(|problem| format!("`{}`: {problem}", file.display()).into())
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

fn tool(value: &Value) -> Option<Tool> {
    let mut document = ToolDocument::new(text(value, "name")?);
    document.description = text(value, "description").unwrap_or_default();
    document.server = text(value, "server").map(Into::into);
    document.server_description = text(value, "server_description").unwrap_or_default();
    if let Some(schema) = value.get("input_schema") {
        document.add_schema(&RawJson::from(schema.clone()));
    }
    Some(Tool {
        id: text(value, "id")?,
        source: text(value, "source")?,
        document,
    })
}

fn query(value: &Value) -> Option<Query> {
    let relevant = value.get("relevant")?.as_array()?;
    let relevant = relevant.iter().filter_map(|id| id.as_str().map(str::to_owned));
    Some(Query {
        text: text(value, "query")?,
        relevant: relevant.collect(),
        source: text(value, "source")?,
    })
}
