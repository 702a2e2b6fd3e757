//! Tools that a caller may not find.

use std::sync::Arc;

use tool_search::{
    SearchFilter, SearchRequest, SearchResults, SearchScope, ToolDocument, ToolIndex, ToolVectors,
};

fn tool(name: &str, description: &str, tag: &str) -> ToolDocument {
    let mut tool = ToolDocument::new(name);
    tool.description = description.to_owned();
    tool.tags = vec![tag.to_owned()];
    tool.server = Some(format!("{tag}-server").into());
    tool
}

/// Index whose last tool is not admitted.
fn search(request: &SearchRequest, vectors: Option<(&ToolVectors, &[Vec<f32>])>) -> SearchResults {
    let index = ToolIndex::build([
        tool("get_weather", "Weather at a place.", "shared"),
        tool("send_mail", "Sends a mail to people.", "shared"),
        tool("launch", "Launches: launch, launch and launch.", "secret"),
    ]);
    let admits = |document: usize| document < 2;
    let scope = SearchScope::default().admit(&admits);
    match vectors {
        Some((tools, queries)) => index.search(request, &scope.vectors(tools, queries)),
        None => index.search(request, &scope),
    }
}

#[test]
fn a_word_of_a_hidden_tool_filters_as_a_word_of_no_tool() {
    let filter = |tag: &str, server: &str| {
        let mut filter = SearchFilter::default();
        filter.tags.extend((!tag.is_empty()).then(|| tag.to_owned()));
        filter
            .servers
            .extend((!server.is_empty()).then(|| server.to_owned()));
        filter
    };
    for request in [SearchRequest::all(), SearchRequest::new("mail to people")] {
        let hidden_tag = search(&request.clone().filter(filter("secret", "")), None);
        let no_tag = search(&request.clone().filter(filter("none", "")), None);
        assert_eq!(hidden_tag, no_tag);
        assert_eq!(hidden_tag.nearest.len(), 2, "{hidden_tag:?}");
        let hidden_server = search(&request.clone().filter(filter("", "secret-server")), None);
        assert_eq!(hidden_server, no_tag);
    }
}

#[test]
fn a_hidden_tool_is_no_measure_for_the_scores_of_others() {
    // The best tool by its words cannot be found. The scores of words are relative to those of `send_mail`.
    let vector = |components: [f32; 2]| Some(Arc::from(components));
    let tools = ToolVectors::new([vector([0.0, 1.0]), vector([0.0, 1.0]), vector([1.0, 0.0])]);
    let request = SearchRequest::new("launch launch a mail");
    let results = search(&request, Some((&tools, &[vec![0.0, 1.0]])));
    assert_eq!(&*results.hits[0].name, "send_mail");
    assert!((results.hits[0].score - 1.0).abs() < 1e-6, "{results:?}");
    assert_eq!(results.hits.len(), 2, "{results:?}");
}
