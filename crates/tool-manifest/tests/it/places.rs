//! Places of the parts of a configuration, for problems that other crates find.

use std::collections::BTreeMap;

use tool_core::PrepareError;
use toolplane::manifest::{ConfigPart, LoadOptions, Loaded, ProcessSecrets, Syntax, load};

const SHORT: &str = "\
servers:
  files:
    command: npx
    env: {TOKEN: '${FILES_TOKEN}'}
    args:
      - -y
      - ${file:/no/such/file}
secrets:
  key: ${env:KEY:?ask the team}
tools:
  search:
    description: Searches
    input_schema:
      type: object
      properties:
        q: {type: strng}
    executor:
      kind: http
      headers:
        Authorization: Bearer ${SEARCH_TOKEN}
      url: ht tp://example.com
";

fn loaded(text: &str) -> Loaded {
    load(&LoadOptions::new().text("a.yaml", Syntax::Yaml, text))
        .unwrap_or_else(|problems| panic!("{}", problems.render(false)))
}

#[test]
fn parts_of_tools() {
    let loaded = loaded(SHORT);
    let place = |part, pointer: &str| {
        let place = loaded.locate("search", part, pointer).unwrap();
        (place.line, place.column, place.field)
    };
    let tool = "tools.search";
    assert_eq!(place(ConfigPart::Tool, ""), (11, 3, tool.to_owned()));
    assert_eq!(
        place(ConfigPart::Settings, "/url"),
        (21, 12, format!("{tool}.executor.url"))
    );
    let header = format!("{tool}.executor.headers.Authorization");
    assert_eq!(
        place(ConfigPart::Settings, "/headers/Authorization/0"),
        (20, 24, header)
    );
    assert_eq!(
        place(ConfigPart::Settings, "/method"),
        (17, 5, format!("{tool}.executor"))
    );
    assert_eq!(
        place(ConfigPart::Settings, ""),
        (17, 5, format!("{tool}.executor"))
    );
    let kind = format!("{tool}.input_schema.properties.q.type");
    assert_eq!(
        place(ConfigPart::InputSchema, "/properties/q/type"),
        (16, 19, kind)
    );
    assert_eq!(place(ConfigPart::OutputSchema, "/type").0, 11);
    assert_eq!(loaded.locate("other", ConfigPart::Tool, ""), None);
    assert_eq!(loaded.locate_server("files", "/args/1").unwrap().line, 7);

    let problem = PrepareError::at("/url", "this is no URL").with_hint("remove the space");
    insta::assert_snapshot!(loaded.diagnose("search", &problem).render(false));
}

#[test]
fn settings_that_are_written_elsewhere() {
    let loaded = loaded(
        "\
apiVersion: promptkit.altairalabs.ai/v1
kind: Tool
metadata:
  name: a
spec:
  description: x
  mode: mock
  mock_result:
    list: [1, 2]
",
    );
    let place = loaded
        .locate("a", ConfigPart::Settings, "/result/list/1")
        .unwrap();
    assert_eq!((place.line, place.column), (9, 15));
    assert_eq!(loaded.locate("a", ConfigPart::Tool, "").unwrap().line, 4);
}

#[test]
fn references_without_a_value() {
    let loaded = loaded(SHORT);
    let variables = [("FILES_TOKEN", "x")];
    let some = ProcessSecrets::fixed(variables, loaded.configuration.secrets.clone());
    let rendered: Vec<String> = loaded
        .check_references(&some)
        .into_iter()
        .chain(loaded.check_tool_references(&some))
        .map(|problem| problem.render(false))
        .collect();
    insta::assert_snapshot!(rendered.join("\n\n"));

    let text = SHORT
        .replace("/no/such/file", "/dev/null")
        .replace("      - ${file:/dev/null}\n", "");
    let all = [("FILES_TOKEN", "x"), ("KEY", "y"), ("SEARCH_TOKEN", "z")];
    let all = ProcessSecrets::fixed(all, BTreeMap::new());
    assert_eq!(self::loaded(&text).check_references(&all), []);
    assert_eq!(self::loaded(&text).check_tool_references(&all), []);
}
