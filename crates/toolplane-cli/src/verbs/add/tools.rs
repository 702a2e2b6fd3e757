//! Tools of a new server, for its operator.

use serde::Serialize;
use toolplane::core::Tool;

use crate::output::{table::Table, text};

/// A tool of the server.
#[derive(Debug, Serialize)]
pub(super) struct ToolRow {
    name: String,
    description: String,
    /// Hints of the server: it vouches for them, nobody else.
    #[serde(skip_serializing_if = "Option::is_none")]
    read_only: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    destructive: Option<bool>,
}

impl ToolRow {
    pub(super) fn new(tool: &Tool) -> Self {
        let annotations = tool.definition().get("annotations");
        let hint = |name: &str| {
            let hint = annotations.as_ref().and_then(|annotations| annotations.get(name));
            hint.and_then(|hint| hint.to::<bool>().ok())
        };
        Self {
            name: tool.name().to_string(),
            description: text::first_line(&tool.descriptor().description).to_owned(),
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
        }
    }

    fn marks(&self) -> &'static str {
        match (self.read_only, self.destructive) {
            (Some(true), _) => "read-only",
            (_, Some(true)) => "destructive",
            (_, Some(false)) => "adds only",
            _ => "unknown",
        }
    }
}

pub(super) fn table(table: Table, tools: &[ToolRow]) -> Table {
    let rows = tools.iter().map(|tool| {
        let description = text::line(&tool.description).into_owned();
        [tool.name.clone(), tool.marks().to_owned(), description]
    });
    table.header(["TOOL", "SAYS IT IS", "DESCRIPTION"]).rows(rows)
}
