//! Names, words and the decision that nothing fits.

use tool_search::{CategoryKind, SearchRequest, SearchScope, ToolDocument, ToolIndex, tokens};

fn tool(name: &str, description: &str) -> ToolDocument {
    let mut tool = ToolDocument::new(name);
    tool.description = description.to_owned();
    tool
}

fn index() -> ToolIndex {
    let mut files = tool("files__read", "Reads a file.");
    files.server = Some("files".into());
    files.tags = vec!["local".to_owned()];
    let mut alias = tool("gh_new_ticket", "Opens an issue in a repository.");
    alias.aliases = vec!["createIssue".to_owned()];
    alias.server = Some("github".into());
    ToolIndex::build([
        tool("weather", "Current weather."),
        tool(
            "weather_alerts",
            "Weather warnings, weather dangers and more weather.",
        ),
        files,
        alias,
    ])
}

fn names(index: &ToolIndex, request: &SearchRequest) -> Vec<String> {
    let results = index.search(request, &SearchScope::default());
    results.hits.iter().map(|hit| hit.name.to_string()).collect()
}

#[test]
fn a_name_or_alias_comes_first_whatever_the_words_say() {
    let index = index();
    assert_eq!(
        names(&index, &SearchRequest::new("Weather")),
        ["weather", "weather_alerts"]
    );
    assert_eq!(
        names(&index, &SearchRequest::new(" FILES__READ "))[0],
        "files__read"
    );
    assert_eq!(
        names(&index, &SearchRequest::new("createissue")),
        ["gh_new_ticket"]
    );
    assert_eq!(names(&index, &SearchRequest::new("files__")), ["files__read"]);
}

#[test]
fn the_beginning_of_a_name_takes_at_most_half_of_the_places() {
    let many = (0..20).map(|number| tool(&format!("get_{number}"), ""));
    let index = ToolIndex::build(many.chain([tool("fetch", "Get a page. Get it now.")]));
    let found = names(&index, &SearchRequest::new("get").limit(4));
    assert_eq!(found.len(), 4);
    assert_eq!(
        found.iter().filter(|name| name.starts_with("get_")).count(),
        3,
        "{found:?}"
    );
    assert!(found.contains(&"fetch".to_owned()), "{found:?}");
}

#[test]
fn words_are_found_by_their_stem_and_by_parts_of_identifiers() {
    let index = index();
    assert_eq!(
        names(&index, &SearchRequest::new("opening issues")),
        ["gh_new_ticket"]
    );
    assert_eq!(
        names(&index, &SearchRequest::new("which repositories?")),
        ["gh_new_ticket"]
    );
    assert_eq!(
        tokens("HTTPServer2 über_Straße 天气预报"),
        [
            "http",
            "server",
            "2",
            "httpserver2",
            "über",
            "straße",
            "天气",
            "气预",
            "预报",
        ]
    );
}

#[test]
fn a_query_that_nothing_fits_names_the_nearest_categories() {
    let index = index();
    let results = index.search(&SearchRequest::new("knit me a pullover"), &SearchScope::default());
    assert!(results.hits.is_empty());
    assert_eq!(results.unmatched, [0]);
    let categories: Vec<_> = results
        .nearest
        .iter()
        .map(|c| (c.kind, &*c.name, c.n_tools))
        .collect();
    assert_eq!(
        categories,
        [
            (CategoryKind::Server, "files", 1),
            (CategoryKind::Tag, "local", 1),
            (CategoryKind::Server, "github", 1),
        ]
    );
}

#[test]
fn several_queries_share_the_results_fairly() {
    let weather = (0..10).map(|number| tool(&format!("weather_{number}"), "weather weather"));
    let index = ToolIndex::build(weather.chain([tool("send_mail", "Sends a mail to people.")]));
    let request = SearchRequest::new("weather in the city")
        .query("send a mail")
        .query("knit a pullover")
        .limit(3);
    let results = index.search(&request, &SearchScope::default());
    let found: Vec<_> = results
        .hits
        .iter()
        .map(|hit| (&*hit.name, &hit.queries[..]))
        .collect();
    assert_eq!(
        found,
        [
            ("weather_0", &[0][..]),
            ("send_mail", &[1][..]),
            ("weather_1", &[0][..])
        ]
    );
    assert_eq!(results.unmatched, [2]);
}

#[test]
fn a_tool_that_two_queries_find_stands_once() {
    let index = index();
    let request = SearchRequest::new("weather warnings now").query("dangers of weather");
    let results = index.search(&request, &SearchScope::default());
    let alerts: Vec<_> = results
        .hits
        .iter()
        .filter(|hit| &*hit.name == "weather_alerts")
        .collect();
    assert_eq!(alerts.len(), 1);
    assert_eq!(alerts[0].queries, [0, 1]);
}
