//! `toolplane tools definitions`: definitions in the formats of providers, and what those cannot express.

use crate::binary::Place;

const TOOLS: &str = "
tools:
  wiki_search:
    description: Searches Wikipedia.
    input_schema:
      type: object
      properties: {q: {type: string, minLength: 1}, limit: {type: integer}}
      required: [q]
    executor: {kind: mock, result: 1}
  other: {description: Another., executor: {kind: mock, result: 1}}
";

#[test]
fn definitions_are_printed_with_what_a_format_cannot_express() {
    let place = Place::with(TOOLS);
    let all = place.run(&["tools", "definitions", "--for", "openai"]);
    assert_eq!((all.code, &*all.stderr), (0, ""));
    assert!(all.stdout.contains(r#""name": "wiki_search""#), "{}", all.stdout);
    assert!(all.stdout.contains(r#""name": "other""#), "{}", all.stdout);
    let gemini = place.run(&["tools", "definitions", "wiki_search", "--for", "gemini"]);
    insta::assert_snapshot!(gemini.stderr, @"warning: `wiki_search` at `/properties/q/minLength`: removed: `minLength`");
    insta::assert_snapshot!(gemini.stdout, @r#"
    [
      {
        "functionDeclarations": [
          {
            "name": "wiki_search",
            "description": "Searches Wikipedia.",
            "parametersJsonSchema": {
              "type": "object",
              "properties": {
                "q": {
                  "type": "string"
                },
                "limit": {
                  "type": "integer"
                }
              },
              "required": [
                "q"
              ]
            }
          }
        ]
      }
    ]
    "#);
    let strict = place.run(&["tools", "definitions", "--for", "openai-responses", "--strict"]);
    insta::assert_snapshot!(strict.stderr, @r"
    warning: `other`: changed: further properties are not taken
    warning: `wiki_search`: changed: further properties are not taken
    warning: `wiki_search` at `/properties/limit`: changed: an optional argument to one that may be null
    ");
    let unknown = place.run(&["tools", "definitions", "wki", "--for", "anthropic"]);
    assert_eq!(unknown.code, 3, "{}", unknown.stderr);
}
