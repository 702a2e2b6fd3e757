//! `toolplane usage`: figures of calls over MCP and on the command line, in each kind of store.

use serde_json::{Value, json};

use crate::{
    binary::{Place, eventually},
    serve::{Served, call},
    tokens::create,
    versions::{ANY, database, done, greet, publish},
};

const CONFIGURATION: &str = "
gateway: {auth: tokens}
policy:
  principals: {ada: {}, bob: {tenant: acme}}
tools:
  buy: {description: Buys, cost_per_call: 0.25, executor: {kind: mock, result: bought}}
  look: {description: Looks, cache: {ttl: 5m}, cost_per_call: 0.001, executor: {kind: mock, result: seen}}
  fail: {description: Fails, executor: {kind: mock, error: {kind: invalid_arguments, message: no}}}
  idle: {description: Does nothing, executor: {kind: mock, result: nothing}}
";

fn usage(place: &Place, arguments: &[&str]) -> Value {
    let run = place.run(&[&["usage", "-o", "json"], arguments].concat());
    run.data();
    run.json()
}

/// Names and numbers of calls, errors and answers of a cache of each line.
fn counts(usage: &Value, names: &[&str]) -> Vec<Value> {
    let lines = usage.as_array().unwrap_or_else(|| panic!("{usage}")).iter();
    let columns = names.iter().chain(&["calls", "errors", "cached"]);
    lines
        .map(|line| columns.clone().map(|name| line[name].clone()).collect())
        .collect()
}

/// Calls by two principals and on the command line are told by tool, principal and day, also after a restart.
fn used(store: &str) {
    let place = Place::with(&format!("store: {store}\n{CONFIGURATION}"));
    let [ada, bob] = ["ada", "bob"].map(|name| create(&place, &[name]));
    let nothing = place.run(&["usage"]);
    assert_eq!((nothing.code, &*nothing.stdout), (0, ""), "{nothing:?}");
    assert!(nothing.stderr.starts_with("no calls from "), "{nothing:?}");
    let served = Served::start(&place);
    let post = |token: &str, tool: &str| {
        let authorization = format!("Authorization: Bearer {token}\r\n");
        let answer = served.post_with(&authorization, &call(1, tool, &json!({})));
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    };
    for tool in ["buy", "look", "look", "fail"] {
        post(&ada, tool);
    }
    post(&bob, "buy");
    // The figures of a running gateway arrive a second later.
    eventually("the calls are stored", || {
        let lines = usage(&place, &[]);
        let n_calls = |line: &Value| line["calls"].as_u64().unwrap();
        lines.as_array().unwrap().iter().map(n_calls).sum::<u64>() == 5
    });
    drop(served);
    place.run(&["call", "buy"]).data();
    let by_tool = usage(&place, &[]);
    let expected = [
        json!(["buy", 3, 0, 0]),
        json!(["look", 2, 0, 1]),
        json!(["fail", 1, 1, 0]),
    ];
    assert_eq!(counts(&by_tool, &["tool"]), expected);
    let [buy, look] = [&by_tool[0], &by_tool[1]];
    assert_eq!(
        (&buy["cost_usd"], &buy["saved_cost_usd"]),
        (&json!(0.75), &json!(0.0)),
        "{buy}"
    );
    assert_eq!(
        (&look["cost_usd"], &look["saved_cost_usd"]),
        (&json!(0.001), &json!(0.001)),
        "{look}"
    );
    assert!(
        buy["p99_ms"].as_f64() >= buy["p50_ms"].as_f64() && buy["p50_ms"].is_number(),
        "{buy}"
    );
    let bytes = buy["result_bytes"].as_u64().unwrap();
    assert_eq!(buy["estimated_result_tokens"], bytes.div_ceil(4), "{buy}");
    let by_principal = usage(&place, &["--by", "principal", "--by", "tenant", "--tool", "buy"]);
    let by_principal = counts(&by_principal, &["principal", "tenant"]);
    assert_eq!(
        by_principal,
        [
            json!(["ada", "default", 1, 0, 0]),
            json!(["bob", "acme", 1, 0, 0]),
            json!(["local", "default", 1, 0, 0]),
        ]
    );
    // All on one day, or on two around midnight.
    let by_day = usage(&place, &["--by", "day", "--since", "2d"]);
    let n_calls: u64 = by_day
        .as_array()
        .unwrap()
        .iter()
        .map(|day| day["calls"].as_u64().unwrap())
        .sum();
    assert_eq!(n_calls, 6, "{by_day}");
    let earlier = place.run(&[
        "usage",
        "-o",
        "json",
        "--since",
        "2020-01-01",
        "--until",
        "2020-12-31",
    ]);
    assert_eq!(earlier.stdout.trim(), "[]", "{earlier:?}");
    assert!(
        earlier.stderr.contains("usage is kept for 90 days"),
        "{earlier:?}"
    );
    let table = place.run(&["usage", "--principal", "ada"]);
    assert!(
        table.stdout.starts_with("TOOL  CALLS  ERRORS  CACHED"),
        "{table:?}"
    );
    assert!(
        table.stdout.contains("$0.25") && table.stderr.starts_with("4 calls from "),
        "{table:?}"
    );
    let csv = place.run(&[
        "usage",
        "--csv",
        "--by",
        "tool",
        "--by",
        "principal",
        "--tool",
        "buy",
    ]);
    let rows: Vec<_> = csv.data().split("\r\n").collect();
    assert!(
        rows[0].starts_with("tool,principal,calls,errors,cached,attempts,mean_ms"),
        "{csv:?}"
    );
    assert!(rows[1].starts_with("buy,ada,1,0,0,1,"), "{csv:?}");
    assert_eq!(rows.len(), 5, "{csv:?}");
    let unused = place.run(&["usage", "--unused"]);
    let lines: Vec<_> = unused.stdout.lines().collect();
    assert!(lines.len() == 2 && lines[1].starts_with("idle "), "{unused:?}");
    assert!(
        unused.stderr.starts_with("1 of 4 tools not called "),
        "{unused:?}"
    );
}

#[test]
fn usage_is_told_by_tool_principal_and_day_on_sqlite() {
    used("{sqlite: data/tools.db}");
}

#[test]
fn usage_is_told_by_tool_principal_and_day_beside_files() {
    used("{files: tools}");
}

#[test]
fn usage_is_told_by_tool_principal_and_day_on_postgresql() {
    if let Some(database) = database() {
        used(&format!("{{postgres: '{}'}}", database.url()));
    }
}

/// Deprecated versions are listed with those who still call them.
#[test]
fn deprecated_versions_are_told_with_their_callers() {
    let place = Place::with("store: {sqlite: tools.db}\n");
    let none = place.run(&["usage", "--deprecated"]);
    assert_eq!(none.code, 0, "{none:?}");
    assert_eq!(none.stderr.trim(), "no version of the store is deprecated");
    for version in ["1.0.0", "1.1.0", "1.2.0"] {
        publish(&place, &greet(&place, version, "hello", ANY));
    }
    for version in ["greet@1.0.0", "greet@1.1.0"] {
        let arguments = [
            "tools",
            "deprecate",
            version,
            "--use",
            "greet@1.2.0",
            "--until",
            "2027-01-31",
        ];
        done(&place.run(&arguments));
    }
    for version in ["greet@1.0.0", "greet@1.0.0", "greet"] {
        place.run(&["call", version]).data();
    }
    let deprecated = usage(&place, &["--deprecated"]);
    let first = &deprecated[0];
    assert_eq!(first["last_call"].as_str().map(str::len), Some(10), "{first}");
    let columns = ["tool", "version", "replacement", "until", "calls", "principals"];
    let shown: Vec<_> = columns.iter().map(|name| first[name].clone()).collect();
    assert_eq!(
        Value::from(shown),
        json!(["greet", "1.0.0", "greet@1.2.0", "2027-01-31", 2, ["local"]])
    );
    assert_eq!(
        (&deprecated[1]["version"], &deprecated[1]["calls"]),
        (&json!("1.1.0"), &json!(0))
    );
    assert_eq!(deprecated.as_array().map(Vec::len), Some(2), "{deprecated}");
    let by_version = usage(&place, &["--by", "version"]);
    let by_version = counts(&by_version, &["tool", "version"]);
    assert_eq!(
        by_version,
        [
            json!(["greet", "1.0.0", 2, 0, 0]),
            json!(["greet", "1.2.0", 1, 0, 0])
        ]
    );
    let table = place.run(&["usage", "--deprecated"]);
    assert!(
        table.stderr.starts_with("1 of 2 deprecated versions not called "),
        "{table:?}"
    );
}

/// Without a named store nothing is recorded, unless the configuration asks for it; and it may refuse.
#[test]
fn usage_is_recorded_where_the_configuration_says_so() {
    let tool = "tools: {buy: {description: Buys, executor: {kind: mock, result: bought}}}\n";
    let used = |store: &str| {
        let place = Place::with(&format!("{store}{tool}"));
        place.run(&["call", "buy"]).data();
        place.run(&["usage"])
    };
    let unnamed = used("");
    assert_eq!(unnamed.code, 2, "{unnamed:?}");
    assert!(unnamed.stderr.contains("no usage is recorded"), "{unnamed:?}");
    assert!(unnamed.stderr.contains("store: {sqlite: FILE}"), "{unnamed:?}");
    let asked_for = used("store: {usage: {enabled: true}}\n");
    assert!(asked_for.stdout.contains("buy"), "{asked_for:?}");
    let refused = used("store: {sqlite: tools.db, usage: {enabled: false}}\n");
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("remove `enabled: false`"), "{refused:?}");
}

/// Settings and options that cannot be meant are refused with a place and advice.
#[test]
fn what_cannot_be_meant_is_refused() {
    for (store, expected) in [
        (
            "{sqlite: a.db, usage: {retention: 36h}}",
            "figures are kept for whole days",
        ),
        (
            "{sqlite: a.db, usage: {retention: 0s}}",
            "figures are kept for whole days",
        ),
        (
            "{enabled: false, usage: {retention: 7d}}",
            "a store that is not enabled keeps no figures of calls",
        ),
    ] {
        let run = Place::with(&format!("store: {store}\n")).run(&["check"]);
        assert!(run.code != 0 && run.stderr.contains(expected), "{store}: {run:?}");
    }
    let place = Place::with("store: {sqlite: a.db, usage: {retention: 7d}}\n");
    place.run(&["check"]).data();
    assert_eq!(
        place.run(&["usage", "-o", "json"]).data().trim(),
        "[]",
        "no warning for what is kept"
    );
    let too_long = place.run(&["usage", "--since", "8d"]);
    assert_eq!(too_long.code, 0, "{too_long:?}");
    assert!(
        too_long.stderr.contains("usage is kept for 7 days"),
        "{too_long:?}"
    );
    for (arguments, expected) in [
        (
            &["--since", "yesterday"][..],
            "write a day, such as `2026-11-01`, or a number of days",
        ),
        (&["--since", "0d"], "write a day, such as"),
        (&["--until", "2026-02-30"], "write a day, such as"),
        (
            &["--since", "2026-02-02", "--until", "2026-02-01"],
            "before it begins",
        ),
        (&["--unused", "--deprecated"], "cannot be used with"),
        (&["--csv", "-o", "yaml"], "two formats"),
    ] {
        let run = place.run(&[&["usage"], arguments].concat());
        assert!(
            run.code == 2 && run.stderr.contains(expected),
            "{arguments:?}: {run:?}"
        );
    }
}
