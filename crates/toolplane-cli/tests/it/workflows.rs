//! `toolplane flow`: workflows are checked, drawn and run.

use crate::binary::Place;

const TOOLS: &str = "
tools:
  web_search:
    description: Searches the web.
    input_schema: {type: object, properties: {query: {type: string}}, required: [query]}
    output_schema: {type: object, properties: {urls: {type: array, items: {type: string}}}}
    executor: {kind: mock, result: {urls: [a, b]}}
  fetch: {description: Fetches a page., executor: {kind: mock, template: '{\"page\": {{ url }}}'}}
";

fn place(workflow: &str) -> Place {
    Place::with(&format!("{TOOLS}{workflow}"))
}

const READ: &str = "
workflows:
  read:
    description: Searches and reads.
    input_schema: {type: object, properties: {topic: {type: string}}, required: [topic]}
    steps:
      - {name: search, tool: web_search, input: {query: $input.topic}}
      - {name: pages, for_each: $results.search.urls, as: url, do: {tool: fetch, input: {url: $url}}}
";

#[test]
fn a_workflow_is_checked_drawn_and_run() {
    let place = place(READ);
    assert_eq!(
        place.run(&["check", "--strict"]).data(),
        "toolplane.yaml: ok, 3 tools, 0 servers\n"
    );
    assert_eq!(
        place.run(&["flow", "check"]).data(),
        "WORKFLOW  STATE\nread      ok\n"
    );
    insta::assert_snapshot!(place.run(&["flow", "graph", "read"]).data(), @r#"
    flowchart TD
        s0["search: web_search"]
        s1["pages (for each url)"]
        s2["fetch"]
        s1 -.-> s2
        s0 --> s1
    "#);
    let dot = place.run(&["flow", "graph", "read", "--format", "dot"]);
    assert!(dot.data().starts_with("digraph workflow {"), "{}", dot.stdout);
    let run = place.run(&["flow", "run", "read", "topic=rust"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(
        run.stdout.replace(char::is_whitespace, ""),
        r#"[{"page":"a"},{"page":"b"}]"#
    );
    for line in ["search", "pages[0].fetch", "pages[1].fetch", "pages"] {
        let shown = run
            .stderr
            .lines()
            .find(|shown| shown.starts_with(&format!("{line} ")));
        assert!(
            shown.is_some_and(|shown| shown.contains("success")),
            "{line}: {}",
            run.stderr
        );
    }
}

#[test]
fn what_does_not_fit_is_shown_with_its_line() {
    let place = place(
        "
workflows:
  read:
    description: Searches and reads.
    steps:
      - {name: search, tool: web_serach, input: {query: a}}
",
    );
    for verb in [&["check"][..], &["flow", "check", "read"]] {
        let run = place.run(verb);
        assert_eq!(run.code, 2, "{verb:?}");
        assert!(
            run.stderr.contains("error: there is no tool `web_serach`\n"),
            "{}",
            run.stderr
        );
        assert!(run.stderr.contains("toolplane.yaml:14:30"), "{}", run.stderr);
        assert!(
            run.stderr.contains("did you mean `web_search`?"),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn a_failed_run_shows_its_steps_and_what_is_no_workflow_is_told() {
    let place = place(
        "
workflows:
  fails: {description: Fails., steps: [{tool: fetch}, {tool: web_search, input: {query: $results.fetch.url}}]}
",
    );
    let run = place.run(&["flow", "run", "fails", "url=x"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{}", run.stderr);
    let is_shown = run
        .stderr
        .lines()
        .any(|line| line.starts_with("web_search ") && line.contains("invalid_arguments"));
    assert!(is_shown, "{}", run.stderr);
    assert!(
        run.stderr
            .contains("step `web_search`: `$results.fetch.url` has no `url` there"),
        "{}",
        run.stderr
    );
    let graph = place.run(&["flow", "graph", "fetch"]);
    assert_eq!(graph.code, 2);
    assert!(
        graph
            .stderr
            .contains("`fetch` is no workflow: its executor is `mock`"),
        "{}",
        graph.stderr
    );
    assert_eq!(place.run(&["flow", "check", "nothing"]).code, 3);
}
