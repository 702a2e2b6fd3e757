//! Definitions of real servers: each is offered, offered with warnings, or refused with a reason. See `data/README.md`.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read,
};

use flate2::read::GzDecoder;
use mcp_mock::{MockReply, MockServer};
use raw_json::RawJson;
use serde_json::{Value, json};
use tool_core::outward_name;
use toolplane::{
    Toolplane,
    manifest::{LoadOptions, Syntax, load},
};

fn rows() -> Vec<Value> {
    let mut text = String::new();
    let packed = &include_bytes!("../data/mcp_tools.jsonl.gz")[..];
    GzDecoder::new(packed)
        .read_to_string(&mut text)
        .expect("it is gzip");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("it is JSON"))
        .collect()
}

/// Verdict on a definition: `accept`, `warn` or `reject`, with the reasons.
type Verdict = (&'static str, BTreeSet<String>);

fn reason_of_refusal(reason: &str) -> &'static str {
    if reason.contains("not one of MCP") {
        "name_not_mcp"
    } else if reason.contains("`inputSchema` is not usable") {
        "meta_schema_invalid"
    } else {
        "another reason"
    }
}

fn reason_of_warning(kind: &str) -> &str {
    match kind {
        "instruction" | "comment" | "markup" => "description_injection_pattern",
        other => other,
    }
}

/// Serves the tools of one server, and returns the verdict on each by its name.
async fn verdicts(server: &str, tools: &[&Value]) -> BTreeMap<String, Verdict> {
    let list = json!({"tools": tools});
    let mock = MockServer::builder()
        .capabilities(RawJson::from(json!({"tools": {}})))
        .on("tools/list", MockReply::result(RawJson::from(&list)))
        .build();
    let http = mock.http().await.expect("a server on loopback");
    // The prefix of a configuration has the characters of a name.
    let prefix = outward_name(&format!("{server}__"));
    let configuration = json!({"servers": {"s": {"url": http.url(), "prefix": prefix, "keep_lists": false}}});
    let options = LoadOptions::new().text("corpus", Syntax::Json, configuration.to_string());
    let plane = Toolplane::builder()
        .loaded(&load(&options).expect("usable"))
        .build()
        .expect("usable");
    let view = plane.view(&plane.local_caller()).await;
    let offered: BTreeSet<String> = view.tools().iter().map(|tool| tool.name().to_string()).collect();
    let mut reasons: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (_, warning) in plane.list_warnings() {
        let name = warning.name.clone().unwrap_or_default();
        let reason = reason_of_warning(warning.kind).to_owned();
        reasons.entry(name).or_default().insert(reason);
    }
    let refused = plane.refused();
    let verdict = |tool: &Value| {
        let name = outward_name(&format!("{prefix}{}", tool["name"].as_str().unwrap_or_default()));
        if let Some(refused) = refused.iter().find(|refused| refused.name == name) {
            assert!(!offered.contains(&name), "{name}");
            return (
                "reject",
                BTreeSet::from([reason_of_refusal(&refused.reason).to_owned()]),
            );
        }
        assert!(offered.contains(&name), "{name} is neither offered nor refused");
        let reasons = reasons.get(&name).cloned().unwrap_or_default();
        (if reasons.is_empty() { "accept" } else { "warn" }, reasons)
    };
    let verdicts = tools
        .iter()
        .map(|tool| (tool["name"].to_string(), verdict(tool)))
        .collect();
    plane.shutdown().await;
    verdicts
}

#[tokio::test]
async fn each_definition_gets_the_verdict_of_its_row() {
    let rows = rows();
    assert_eq!(rows.len(), 810);
    let mut servers: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for row in &rows {
        let server = row["server"].as_str().expect("a row has a server");
        servers.entry(server).or_default().push(row);
    }
    let mut wrong = Vec::new();
    for (server, rows) in servers {
        let tools: Vec<&Value> = rows.iter().map(|row| &row["tool"]).collect();
        let verdicts = verdicts(server, &tools).await;
        for row in rows {
            let name = row["tool"]["name"].to_string();
            let (verdict, reasons) = &verdicts[&name];
            let expected: BTreeSet<String> = serde_json::from_value(row["reasons"].clone()).expect("a list");
            if row["expect"] != *verdict || expected != *reasons {
                wrong.push(format!(
                    "{server} {name}: expected {} {expected:?}, got {verdict} {reasons:?}",
                    row["expect"]
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} disagree:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
