//! Filters and orders.

use std::time::Duration;

use tool_search::{
    MeasuredTool, SearchFilter, SearchOrder, SearchRequest, SearchScope, ToolDocument, ToolIndex,
};

fn tool(name: &str, capability: &str, tag: &str, sla: Option<f64>, latency: Option<u64>) -> ToolDocument {
    let mut tool = ToolDocument::new(name);
    tool.description = "Translates texts.".to_owned();
    tool.server = Some(format!("{name}-server").into());
    tool.capabilities = vec![capability.to_owned()];
    tool.tags = vec![tag.to_owned()];
    tool.required_permissions = vec![format!("{tag}.use")];
    tool.sla = sla;
    tool.latency = latency.map(Duration::from_millis);
    tool
}

fn index() -> ToolIndex {
    ToolIndex::build([
        tool("a", "translate", "beta", Some(99.0), Some(300)),
        tool("b", "translate", "production-ready", Some(99.9), None),
        tool("c", "translate", "production-ready", None, Some(10)),
        tool("d", "search", "production-ready", Some(99.5), Some(20)),
    ])
}

fn found(request: &SearchRequest, scope: &SearchScope<'_>) -> String {
    index()
        .search(request, scope)
        .hits
        .iter()
        .map(|hit| &*hit.name)
        .collect::<Vec<_>>()
        .join("")
}

fn filter(capabilities: &[&str], tags: &[&str], servers: &[&str], permissions: &[&str]) -> SearchFilter {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let mut filter = SearchFilter::default();
    (filter.capabilities, filter.tags) = (owned(capabilities), owned(tags));
    (filter.servers, filter.permissions) = (owned(servers), owned(permissions));
    filter
}

#[test]
fn tools_are_found_by_capability_and_tag_in_the_order_of_their_sla() {
    let request = SearchRequest::all()
        .filter(filter(&["translate"], &["production-ready"], &[], &[]))
        .order(SearchOrder::Sla);
    assert_eq!(found(&request, &SearchScope::default()), "bc");
}

#[test]
fn a_tool_passes_with_all_words_and_one_of_the_servers() {
    for (filter, expected) in [
        (filter(&[], &[], &[], &[]), "abcd"),
        (filter(&[], &[], &["a-server", "d-server"], &[]), "ad"),
        (
            filter(&["translate"], &[], &["a-server", "d-server", "none"], &[]),
            "a",
        ),
        (filter(&[], &[], &[], &["beta.use"]), "a"),
        (filter(&["translate", "search"], &[], &[], &[]), ""),
        (filter(&["fly"], &[], &[], &[]), ""),
        (filter(&[], &[], &["none"], &[]), ""),
    ] {
        let request = SearchRequest::all().filter(filter.clone());
        assert_eq!(found(&request, &SearchScope::default()), expected, "{filter:?}");
        let with_query = SearchRequest::new("translate texts").filter(filter.clone());
        let mut names: Vec<_> = found(&with_query, &SearchScope::default()).chars().collect();
        names.sort_unstable();
        assert_eq!(names.iter().collect::<String>(), expected, "{filter:?}");
    }
}

#[test]
fn measurements_have_precedence_over_declarations() {
    let measured = |document: usize| match document {
        1 => MeasuredTool::new(Some(50.0), Some(Duration::from_secs(9))),
        2 => MeasuredTool::new(Some(100.0), None),
        _ => MeasuredTool::default(),
    };
    let scope = SearchScope::default().measured(&measured);
    let request = SearchRequest::new("translate texts");
    assert_eq!(found(&request.clone().order(SearchOrder::Sla), &scope), "cdab");
    assert_eq!(
        found(&request.clone().order(SearchOrder::Latency), &scope),
        "cdab"
    );
    assert_eq!(
        found(&request.order(SearchOrder::Latency), &SearchScope::default()),
        "cdab"
    );
}

#[test]
fn a_reliable_tool_that_hardly_fits_does_not_come_first() {
    let mut reliable = ToolDocument::new("report");
    reliable.description = "Reports figures of sales in many texts.".to_owned();
    reliable.sla = Some(100.0);
    let index = ToolIndex::build([tool("translate", "translate", "x", Some(90.0), None), reliable]);
    let request = SearchRequest::new("translate texts").order(SearchOrder::Sla);
    let results = index.search(&request, &SearchScope::default());
    assert_eq!(&*results.hits[0].name, "translate");
}
