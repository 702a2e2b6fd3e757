//! Routes: tools that choose another tool, and `toolplane route`, which tells the choice.

use crate::binary::Place;

const TOOLS: &str = "
tools:
  exa:
    description: Searches with Exa.
    capabilities: [search]
    tags: [realtime-data]
    cost_per_call: 0.005
    read_only: true
    executor: {kind: mock, result: {from: exa}}
  wiki:
    description: Searches Wikipedia.
    capabilities: [search]
    latency: fast
    read_only: true
    executor: {kind: mock, template: '{\"q\": \"{{ q }}\"}'}
  old:
    description: Searches an old index.
    capabilities: [search]
    required_permissions: [network.external]
    executor: {kind: mock, result: {from: old}}
";

fn place(route: &str) -> Place {
    Place::with(&format!("{TOOLS}{route}"))
}

const FIND: &str = "
  find:
    description: Searches with whatever is best now.
    input_schema: {type: object, properties: {query: {type: string}}, required: [query]}
    route: {capability: search, priority: speed, arguments: {wiki: {q: $input.query}}}
";

#[test]
fn a_route_is_checked_explained_and_called() {
    let place = place(FIND);
    assert_eq!(
        place.run(&["check", "--strict"]).data(),
        "toolplane.yaml: ok, 4 tools, 0 servers\n"
    );
    insta::assert_snapshot!(place.run(&["route", "find", "--explain"]).data(), @r"
       TOOL  SCORE  LATENCY  WHY
    *  wiki  120.0           +20 is declared as fast
       exa   100.0
       old                   out: the caller may not call it
    ");
    insta::assert_snapshot!(
        place.run(&["route", "search", "--requirement", "realtime-data", "--priority", "cost", "--explain"]).data(),
        @r"
       TOOL  SCORE  LATENCY  WHY
    *  exa   125.0           -5 costs 0.005 US dollars, +30 meets 1 of 1 requirement
       wiki  100.0
       old                   out: the caller may not call it
    "
    );
    assert_eq!(
        place.run(&["route", "search", "--tag", "realtime-data"]).data(),
        "exa\n"
    );
    let call = place.run(&["call", "find", "query=rust"]);
    assert_eq!(call.stdout.replace(char::is_whitespace, ""), r#"{"q":"rust"}"#);
    let explained = place.run(&["call", "find", "query=rust", "--explain"]);
    assert!(
        explained
            .stderr
            .contains("`wiki`: 120.0 (+20 is declared as fast)"),
        "{}",
        explained.stderr
    );
    // Who may not call a tool does not hear of it.
    assert!(!explained.stderr.contains("`old`"), "{}", explained.stderr);
}

#[test]
fn without_a_tool_the_reason_is_told() {
    let place = place(FIND);
    let none = place.run(&["route", "serch"]);
    assert_eq!(none.code, 3);
    insta::assert_snapshot!(none.stderr, @r"
    error: no tool has the capability `serch`
    hint: tools have `search`
    ");
    let out = place.run(&["route", "search", "--max-cost", "0.001", "--explain"]);
    assert_eq!(out.code, 6);
    insta::assert_snapshot!(format!("{}{}", out.stdout, out.stderr), @r"
       TOOL  SCORE  LATENCY  WHY
       exa                   out: it costs 0.005 US dollars, and 0.001 are allowed
       old                   out: the caller may not call it
       wiki                  out: its cost is not declared
    error: every candidate for `search` is out
    ");
    let out = place.run(&["route", "search", "--max-cost", "0.001"]);
    insta::assert_snapshot!(out.stderr, @r"
    error: every candidate for `search` is out
    hint: `--explain` shows the reasons
    ");
}

#[test]
fn what_a_route_names_and_nothing_has_is_reported() {
    let place = place(
        "
  find:
    description: Searches.
    route: {capability: serch, tools: [wikki], arguments: {wki: {q: $input.query}}}
",
    );
    insta::assert_snapshot!(place.run(&["check"]).stderr, @r"
    warning: no tool has the capability `serch`
      --> toolplane.yaml:24:25
       |
    24 |     route: {capability: serch, tools: [wikki], arguments: {wki: {q: $input.query}}}
       |                         ^^^^^ in `tools.find.route.capability`
       |
       = help: did you mean `search`?

    warning: no tool is called `wikki`
      --> toolplane.yaml:24:39
       |
    24 |     route: {capability: serch, tools: [wikki], arguments: {wki: {q: $input.query}}}
       |                                       ^^^^^^^ in `tools.find.route.tools`

    warning: `wki` is no candidate of the route
      --> toolplane.yaml:24:65
       |
    24 |     route: {capability: serch, tools: [wikki], arguments: {wki: {q: $input.query}}}
       |                                                                 ^^^^^^^^^^^^^^^^^ in `tools.find.route.arguments.wki`
       |
       = help: remove it, or give the tool the capability
    ");
}

#[test]
fn a_route_that_cannot_be_read_is_reported_with_its_place() {
    let settings = place(
        "
  find:
    description: Searches.
    route: {capability: search, priority: fast, arguments: {wiki: {q: $results.a}}}
",
    );
    insta::assert_snapshot!(settings.run(&["check"]).stderr, @r"
    error: there is no priority `fast`
      --> toolplane.yaml:24:43
       |
    24 |     route: {capability: search, priority: fast, arguments: {wiki: {q: $results.a}}}
       |                                           ^^^^ in `tools.find.route.priority`
       |
       = help: there are `speed`, `cost`, `reliability`

    error: there is no `$results.a` in a route
      --> toolplane.yaml:24:71
       |
    24 |     route: {capability: search, priority: fast, arguments: {wiki: {q: $results.a}}}
       |                                                                       ^^^^^^^^^^ in `tools.find.route.arguments.wiki.q`
       |
       = help: refer to the arguments of the route: `$input.NAME`

    error: the configuration cannot be used: 2 errors
    ");
    let place = place(
        "
  both:
    description: Searches.
    route: {capability: search}
    executor: {kind: mock, result: 1}
  word: {description: Searches., route: search}
",
    );
    insta::assert_snapshot!(place.run(&["check"]).stderr, @r"
    error: a tool with `route` has no `executor`
      --> toolplane.yaml:25:5
       |
    25 |     executor: {kind: mock, result: 1}
       |     ^^^^^^^^ in `tools.both.executor`
       |
       = help: remove one of them: a route calls other tools, and an executor runs this one

    error: expected a map, found a text
      --> toolplane.yaml:26:41
       |
    26 |   word: {description: Searches., route: search}
       |                                         ^^^^^^ in `tools.word.route`
       |
       = help: write `{capability: ..}`

    error: the configuration cannot be used: 2 errors
    ");
}
