use serde::Serialize;
use toolplane::{
    FoundTools, Toolplane,
    search::{SearchFilter, SearchOrder, SearchRequest, signature},
};

use super::server_of;
use crate::{
    command::{Format, Search, Sort},
    error::CliError,
    exit::Exit,
    output::{Console, text},
};

/// Results of a search.
#[derive(Serialize)]
struct SearchOutput<'a> {
    tools: Vec<FoundRow<'a>>,
    /// Queries that no tool fits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unmatched: Vec<&'a str>,
    /// Categories near these queries.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nearest: Vec<CategoryRow<'a>>,
}

#[derive(Serialize)]
struct FoundRow<'a> {
    name: &'a str,
    score: f32,
    signature: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<&'a str>,
    source: &'a str,
    /// Queries that found it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    queries: Vec<&'a str>,
}

#[derive(Serialize)]
struct CategoryRow<'a> {
    kind: &'static str,
    name: &'a str,
    n_tools: usize,
}

pub(super) async fn search(plane: &Toolplane, search: &Search, console: Console) -> Result<Exit, CliError> {
    let mut filter = SearchFilter::default();
    filter.capabilities.clone_from(&search.capability);
    filter.tags.clone_from(&search.tag);
    filter.servers.clone_from(&search.server);
    filter.permissions.clone_from(&search.permission);
    if search.queries.is_empty() && filter == SearchFilter::default() {
        return Err(CliError::usage("nothing to search for")
            .with_hint("write a query, or `--capability`, `--tag`, `--server` or `--permission`"));
    }
    let order = match search.sort {
        Sort::Relevance => SearchOrder::Relevance,
        Sort::Sla => SearchOrder::Sla,
        Sort::Latency => SearchOrder::Latency,
    };
    let queries = search.queries.iter();
    let request = queries.fold(SearchRequest::all(), |request, query| {
        request.query(query.as_str())
    });
    let request = request.filter(filter).order(order).limit(search.limit);
    let found = plane.search(&request, &plane.local_caller()).await;
    let _ = super::warn_of_missing(plane, None, console);
    for warning in &found.warnings {
        console.warn(&text::line(warning));
    }
    show(&request, &found, console)
}

fn show(request: &SearchRequest, found: &FoundTools, console: Console) -> Result<Exit, CliError> {
    let query = |number: &usize| request.queries().get(*number).map(String::as_str);
    let output = SearchOutput {
        tools: found.tools.iter().map(|found| row(found, query)).collect(),
        unmatched: found.unmatched.iter().filter_map(query).collect(),
        nearest: found
            .nearest
            .iter()
            .map(|category| CategoryRow {
                kind: category.kind.as_str(),
                name: &category.name,
                n_tools: category.n_tools,
            })
            .collect(),
    };
    if console.format == Format::Table {
        for query in &output.unmatched {
            console.say(&format!("no tool fits `{}`", text::line(query)));
        }
        if output.tools.is_empty() && output.unmatched.is_empty() {
            console.say("no tool fits the filter");
        }
        if !output.nearest.is_empty() {
            let shown = output.nearest.iter().map(|category| {
                format!(
                    "{} {} ({})",
                    category.kind,
                    text::line(category.name),
                    category.n_tools
                )
            });
            console.say(&format!("nearest: {}", shown.collect::<Vec<_>>().join(", ")));
        }
        if output.tools.is_empty() {
            return Ok(Exit::NotFound);
        }
    }
    console.value(&output, || {
        let lines = output
            .tools
            .iter()
            .map(|tool| text::line(&tool.signature).into_owned());
        lines.collect::<Vec<_>>().join("\n")
    })?;
    Ok(if output.tools.is_empty() {
        Exit::NotFound
    } else {
        Exit::Done
    })
}

fn row<'a>(found: &'a toolplane::FoundTool, query: impl Fn(&usize) -> Option<&'a str>) -> FoundRow<'a> {
    let descriptor = found.tool.descriptor();
    FoundRow {
        name: found.tool.name(),
        score: found.score,
        signature: signature(
            found.tool.name(),
            &descriptor.input_schema,
            &descriptor.description,
        ),
        server: server_of(&found.tool),
        source: &descriptor.origin.place,
        queries: found.queries.iter().filter_map(query).collect(),
    }
}
