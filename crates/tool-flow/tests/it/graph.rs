use serde_json::json;
use tool_flow::{GraphFormat, workflow_graph};

#[test]
fn a_graph_shows_steps_branches_and_what_waits_for_what() {
    let settings = json!({"steps": [
        {"name": "search", "tool": "web_search", "input": {"query": "$input.topic"}},
        {"name": "pages", "for_each": "$results.search.urls", "as": "url", "do": [{"tool": "fetch", "optional": true}]},
        {"name": "choice", "if": "results.pages != \"<none>\"", "then": "summarize", "else": {"tool": "tell", "fallback": "mail"}},
    ]});
    let mermaid = workflow_graph(&settings, GraphFormat::Mermaid).unwrap();
    assert_eq!(
        mermaid,
        r#"flowchart TD
    s0["search: web_search"]
    s1["pages (for each url)"]
    s2["fetch (optional)"]
    s3["choice (if results.pages != &quot;&lt;none>&quot;)"]
    s4["summarize"]
    s5["tell (else mail)"]
    s1 -.-> s2
    s3 -. then .-> s4
    s3 -. else .-> s5
    s0 --> s1
    s1 --> s3
"#
    );
    let dot = workflow_graph(&settings, GraphFormat::Dot).unwrap();
    assert!(dot.starts_with("digraph workflow {\n"), "{dot}");
    assert!(
        dot.contains(r#"s3 [label="choice (if results.pages != \"<none>\")"];"#),
        "{dot}"
    );
    assert!(
        dot.contains("s3 -> s5 [style=dashed, label=\"else\"];\n"),
        "{dot}"
    );
    assert!(dot.ends_with("}\n"), "{dot}");
}
