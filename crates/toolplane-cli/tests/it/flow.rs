//! The first steps of a user: `init`, `check`, `tools ls`, `call`.

use crate::binary::Place;

#[test]
fn what_init_writes_works_at_once() {
    let place = Place::empty();
    let init = place.run(&["init"]);
    assert_eq!((init.code, init.stdout.as_str()), (0, ""));
    insta::assert_snapshot!(init.stderr, @r"
    wrote `toolplane.yaml`; try it:
      toolplane check
      toolplane tools ls
      toolplane call greet name=World
      toolplane serve
    ");
    assert_eq!(
        place.run(&["check", "--strict"]).data(),
        "toolplane.yaml: ok, 2 tools, 0 servers\n"
    );
    assert!(
        place
            .run(&["tools", "ls"])
            .data()
            .contains("Greets someone by name.")
    );
    assert_eq!(
        place.run(&["call", "greet", "name=Wor\"ld", "-o", "json"]).data(),
        "{\"greeting\": \"Hello, Wor\\\"ld!\"}\n"
    );
    assert_eq!(
        place.run(&["call", "forecast", "city=Oslo", "days=3"]).json()["sky"],
        "clear"
    );
}

/// The commented parts are examples too: without their `#` they must load.
#[test]
fn what_init_leaves_as_comments_works_as_well() {
    let place = Place::empty()
        .variable("GITHUB_TOKEN", "t")
        .variable("REMOTE_TOKEN", "t");
    assert_eq!(place.run(&["init"]).code, 0);
    let text = std::fs::read_to_string(place.path().join("toolplane.yaml")).unwrap();
    // Prose has one space after its `#`; an example has none, or its indentation.
    let is_example = |line: &&str| {
        let behind = line.strip_prefix('#');
        behind.is_some_and(|behind| !behind.starts_with(' ') || behind.starts_with("  "))
    };
    let (_, body) = text.split_once("tools:\n").unwrap();
    let lines = body
        .lines()
        .map(|line| if is_example(&line) { &line[1..] } else { line });
    let uncommented = format!("tools:\n{}", lines.collect::<Vec<_>>().join("\n"));
    place.write("all.yaml", &uncommented);
    let check = place.run(&["check", "all.yaml"]);
    assert_eq!(
        (check.stdout.as_str(), check.code),
        ("all.yaml: ok, 3 tools, 2 servers\n", 0),
        "{}\n{uncommented}",
        check.stderr
    );
}

#[test]
fn init_replaces_nothing_unless_told() {
    let place = Place::with("mine");
    let refused = place.run(&["init"]);
    assert_eq!(refused.code, 1);
    assert!(
        refused.stderr.contains("exists already") && refused.stderr.contains("--force"),
        "{refused:?}"
    );
    let content = || std::fs::read_to_string(place.path().join("toolplane.yaml")).unwrap();
    assert_eq!(content(), "mine");

    let elsewhere = place.run(&["init", "sub/other.yaml"]);
    assert_eq!(elsewhere.code, 0);
    assert!(elsewhere.stderr.contains("toolplane -c sub/other.yaml check"));
    assert_eq!(place.run(&["-c", "sub/other.yaml", "check"]).code, 0);

    assert_eq!(place.run(&["init", "--force", "-q"]).data(), "");
    assert!(content().contains("greet"));
}

#[test]
fn configurations_are_found_in_order() {
    let tool =
        |name: &str| format!("tools: {{{name}: {{description: d, executor: {{kind: mock, result: 1}}}}}}");
    let place = Place::empty();
    let names = |place: &Place, arguments: &[&str]| {
        let tools = place
            .run(&[&["tools", "ls", "-o", "json"], arguments].concat())
            .json();
        let names = tools
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    place.write(".config/toolplane/toolplane.yaml", tool("home"));
    assert_eq!(names(&place, &[]), ["home"]);
    place.write("toolplane.yaml", tool("here"));
    assert_eq!(names(&place, &[]), ["here"]);
    place.write("named.yaml", tool("named"));
    let place = place.variable("TOOLPLANE_CONFIG", "named.yaml");
    assert_eq!(names(&place, &[]), ["named"]);
    place.write("more/a.yaml", tool("a"));
    place.write(
        "more/b.json",
        r#"{"tools": {"b": {"description": "d", "executor": {"kind": "mock", "result": 1}}}}"#,
    );
    assert_eq!(
        names(&place, &["-c", "toolplane.yaml", "-c", "more"]),
        ["a", "b", "here"]
    );
}

#[test]
fn a_bad_file_of_a_directory_is_left_out_with_a_warning() {
    let place = Place::empty();
    place.write(
        "tools/good.yaml",
        "tools: {good: {description: d, executor: {kind: mock, result: 1}}}",
    );
    place.write(
        "tools/bad.yaml",
        "tools: {bad: {descripton: d, executor: {kind: mock, result: 1}}}",
    );
    let list = place.run(&["-c", "tools", "tools", "ls"]);
    assert_eq!(list.code, 0);
    assert!(list.stdout.contains("good") && !list.stdout.contains("bad"));
    assert!(
        list.stderr
            .contains("tools/bad.yaml:1:15: unknown key `descripton` (left out)"),
        "{list:?}"
    );
    assert_eq!(place.run(&["check", "tools"]).code, 2);
}
