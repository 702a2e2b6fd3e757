//! Examples of the pages about dialects: each file is loaded, what it refuses is what the page shows, and tools are
//! called.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::{Value, json};
use tool_testkit::BookPage;

use super::Home;
use crate::support::binary;

/// Writes the block of a language below a heading to a file, and returns the home with it.
fn home_with(page: &BookPage, heading: &str, language: &str, file: &str) -> Home {
    let home = Home::new();
    write(&home, page, heading, language, file);
    home
}

fn write(home: &Home, page: &BookPage, heading: &str, language: &str, file: &str) {
    let [block] = page.below(heading, language)[..] else {
        panic!("several blocks of `{language}` below `{heading}`");
    };
    fs::write(home.path().join(file), &block.text).unwrap();
}

/// Runs `toolplane` with a file, and returns whether it succeeded, its output and its messages. Secrets have values.
fn run(home: &Home, file: &str, arguments: &[&str]) -> (bool, String, String) {
    let output = home
        .command(binary())
        .args(["--config", file])
        .args(arguments)
        .envs([("WEATHER_API_KEY", "k"), ("NOTES_TOKEN", "n")])
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

/// Checks a file, and returns what is said of it. Neither errors nor warnings are said of an example.
fn check(home: &Home, file: &str) -> String {
    let (is_right, said, complaint) = run(home, file, &["check"]);
    assert!(is_right && complaint.is_empty(), "{complaint}");
    said
}

/// Returns the names of the tools of a file. The example servers do not start, and their own tools are missing.
fn tools(home: &Home, file: &str) -> Vec<String> {
    let (is_right, listed, complaint) = run(home, file, &["tools", "ls", "--output", "json"]);
    assert!(is_right, "{complaint}");
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let tools = listed.as_array().unwrap_or_else(|| panic!("{listed}"));
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Calls a tool and returns its result.
fn call(home: &Home, file: &str, arguments: &[&str]) -> Value {
    let (is_right, result, complaint) = run(home, file, &[&["call"], arguments].concat());
    assert!(is_right, "{complaint}");
    serde_json::from_str(&result).unwrap()
}

/// Compares what is said of the refused file of a page with what the page shows.
fn refuses(page: &BookPage, language: &str) {
    let file = format!("refused.{language}");
    let home = home_with(page, "Refused", language, &file);
    let (is_right, _, complaint) = run(&home, &file, &["check"]);
    assert!(!is_right);
    let [shown] = page.below("Refused", "text")[..] else {
        panic!("several texts");
    };
    assert_eq!(complaint, shown.text);
}

#[test]
fn the_dialect_of_toolplane() {
    let page = BookPage::read("dialects/toolplane.md");
    for heading in ["Short form", "Manifests"] {
        let file = "toolplane.yaml";
        let home = home_with(&page, heading, "yaml", file);
        assert_eq!(check(&home, file), "toolplane.yaml: ok, 2 tools, 1 server\n");
        assert_eq!(tools(&home, file), ["forecast", "trip"], "{heading}");
        assert_eq!(
            call(&home, file, &["trip", "city=Oslo"]),
            json!({"umbrella": false})
        );
    }
    refuses(&page, "yaml");
}

#[test]
fn promptkit() {
    let page = BookPage::read("dialects/promptkit.md");
    let file = "promptkit.yaml";
    let home = home_with(&page, "Example", "yaml", file);
    assert_eq!(check(&home, file), "promptkit.yaml: ok, 3 tools, 1 server\n");
    assert_eq!(tools(&home, file), ["get_weather", "order_status", "search"]);
    let result = call(&home, file, &["order_status", "order_id=7"]);
    assert_eq!(result, json!({"order_id": "7", "state": "shipped"}));
    shows(&page, &result);
    refuses(&page, "yaml");
}

#[test]
fn kiwi() {
    let page = BookPage::read("dialects/kiwi.md");
    let file = "kiwi.json";
    let home = home_with(&page, "Example", "json", file);
    assert_eq!(check(&home, file), "kiwi.json: ok, 5 tools, 1 server\n");
    assert_eq!(
        tools(&home, file),
        [
            "create_page",
            "disk_usage",
            "to_pdf",
            "weather_forecast",
            "word_count"
        ]
    );
    let (is_right, shown, complaint) = run(
        &home,
        file,
        &["tools", "show", "weather_forecast", "--output", "json"],
    );
    assert!(is_right, "{complaint}");
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let schema = json!({
        "type": "object",
        "properties": {"lat": {"type": "number", "minimum": -90, "maximum": 90}, "lon": {"type": "number"}},
        "required": ["lat", "lon"],
    });
    assert_eq!(shown["definition"]["inputSchema"], schema, "{shown}");
    refuses(&page, "json");
}

#[test]
fn okso() {
    let page = BookPage::read("dialects/okso.md");
    let file = "toolplane.yaml";
    let home = home_with(&page, "Example", "yaml", file);
    write(&home, &page, "Example", "json", "saved.json");
    write(&home, &page, "Example", "bash", "endpoint.sh");
    let endpoint = home.path().join("endpoint.sh");
    fs::set_permissions(&endpoint, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(
        check(&home, file),
        "toolplane.yaml: ok, 1 tool, 0 servers, 1 endpoint\n"
    );
    assert_eq!(tools(&home, file), ["terminal"]);
    let result = call(&home, file, &["terminal", "query=date"]);
    assert_eq!(result, json!({"stdout": "done", "exit_code": 0}));
    shows(&page, &result);
    refuses(&page, "json");
}

/// Checks that the page shows a result as the program prints it.
fn shows(page: &BookPage, result: &Value) {
    let [shown] = page.below("Example", "console")[..] else {
        panic!("several consoles");
    };
    let (_, shown) = shown.text.split_once('\n').unwrap();
    assert_eq!(serde_json::from_str::<Value>(shown).unwrap(), *result);
}
