//! Files that are made to take time, memory or the process down.

use std::fmt::Write;

use proptest::prelude::*;
use toolplane::manifest::{LoadOptions, Syntax, load};

fn first_problem(syntax: Syntax, text: String) -> String {
    let problems = load(&LoadOptions::new().text("a", syntax, text)).unwrap_err();
    let _ = problems.render(true);
    problems.iter().next().unwrap().message.clone()
}

#[test]
fn a_bomb_of_aliases() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let before = format!("*a{}, ", level - 1).repeat(10);
        let _ = writeln!(text, "a{level}: &a{level} [{before}]");
    }
    assert_eq!(
        first_problem(Syntax::Yaml, text),
        "aliases stand for more than 10000 values"
    );
}

#[test]
fn an_alias_of_itself() {
    let message = "this alias stands for a value that it is itself a part of";
    assert_eq!(
        first_problem(Syntax::Yaml, "tools: &a {b: *a}".to_owned()),
        message
    );
}

#[test]
fn depth() {
    let message = "values are nested deeper than 64 levels";
    for (syntax, text) in [
        (Syntax::Json, "[".repeat(100_000)),
        (Syntax::Json, "{\"a\":".repeat(100_000)),
        (Syntax::Yaml, "[".repeat(100_000)),
        (Syntax::Yaml, "{a: ".repeat(100_000)),
        (
            Syntax::Yaml,
            (0..200)
                .map(|depth| format!("{}a:\n", " ".repeat(depth)))
                .collect(),
        ),
        (Syntax::Yaml, "- ".repeat(100_000)),
    ] {
        assert_eq!(first_problem(syntax, text.clone()), message, "{}", &text[..20]);
    }
    let nested = |depth: usize| format!("{{\"a\": {}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1));
    assert_eq!(first_problem(Syntax::Json, nested(64)), "unknown key `a`");
    assert_eq!(first_problem(Syntax::Json, nested(65)), message);
    assert_eq!(first_problem(Syntax::Yaml, nested(64)), "unknown key `a`");
    assert_eq!(first_problem(Syntax::Yaml, nested(65)), message);
}

#[test]
fn size() {
    let message = "`a` has more than the 4194304 bytes that are read";
    assert_eq!(
        first_problem(Syntax::Yaml, "x".repeat(4 * 1024 * 1024 + 1)),
        message
    );
    let many = format!("[{}]", "1,".repeat(200_000));
    assert_eq!(
        first_problem(Syntax::Json, many),
        "the file has more than 200000 values"
    );
}

#[test]
fn many_problems_in_one_long_line() {
    let keys: String = (0..190_000).map(|index| format!("\"k{index}\":1,")).collect();
    let problems = load(&LoadOptions::new().text("a", Syntax::Json, format!("{{{keys}}}"))).unwrap_err();
    assert_eq!(problems.iter().count(), 101);
    let keys = "\"k\":1,".repeat(190_000);
    let problems = load(&LoadOptions::new().text("a", Syntax::Json, format!("{{{keys}}}"))).unwrap_err();
    assert_eq!(problems.iter().count(), 101);
}

#[test]
fn many_tools_in_one_long_line() {
    let tools: String = (0..30_000)
        .map(|index| format!("\"t{index}\":{{\"description\":\"x\",\"executor\":{{\"kind\":\"mock\"}}}},"))
        .collect();
    let loaded =
        load(&LoadOptions::new().text("a", Syntax::Json, format!("{{\"tools\":{{{tools}}}}}"))).unwrap();
    assert_eq!(loaded.configuration.tools.len(), 30_000);
}

/// Pieces that files are made of, so that random texts get past the first character.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        proptest::sample::select(vec![
            "tools:",
            "servers:",
            "\n",
            "\n  ",
            "\n    ",
            "- ",
            ": ",
            "{",
            "}",
            "[",
            "]",
            "\"",
            "'",
            "&a ",
            "*a",
            "!!str ",
            "|\n  ",
            ">-\n  ",
            "---\n",
            "...\n",
            "%YAML 1.2\n",
            "#",
            ",",
            "012",
            ".inf",
            "1e999",
            "~",
            "\t",
            "command",
            "url",
            "description",
            "executor",
            "kind",
            "apiVersion: toolplane.dev/v1",
            "tool_id: a",
            "tool_type: mcp",
            "parameters",
            "${",
            "}",
            "\\ud800",
            "é",
            "\u{feff}",
            "//",
            "/*",
            "*/",
            "mcpServers",
        ])
        .prop_map(str::to_owned),
        ".{0,3}",
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn no_text_panics(text in pieces()) {
        for syntax in [Syntax::Yaml, Syntax::Json] {
            let problems = match load(&LoadOptions::new().text("a", syntax, text.clone())) {
                Ok(loaded) => loaded.diagnostics,
                Err(problems) => problems.into_iter().collect(),
            };
            for problem in problems {
                assert!(!problem.render(true).is_empty());
            }
        }
    }

    #[test]
    fn no_nested_text_panics(text in pieces()) {
        for frame in ["tools: {a: {description: x, executor: {kind: mock}, input_schema: ", "servers: {a: {env: ", "tool_id: a\nparameters: "] {
            let text = format!("{frame}{text}");
            if let Err(problems) = load(&LoadOptions::new().text("a", Syntax::Yaml, text)) {
                assert!(!problems.render(false).is_empty());
            }
        }
    }
}
