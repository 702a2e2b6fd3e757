//! Real calls and wrong ones derived from them: see `data/README.md`.

use std::io::Read;

use flate2::read::GzDecoder;
use raw_json::RawJson;
use serde_json::Value;
use tool_core::{Arguments, Invoke, Layer};
use tool_policy::ValidationLayer;
use tool_testkit::{ScriptStep, ScriptedExecutor, TestTool};

use crate::context;

fn rows() -> Vec<Value> {
    let mut text = String::new();
    let packed = &include_bytes!("../data/args.jsonl.gz")[..];
    GzDecoder::new(packed)
        .read_to_string(&mut text)
        .expect("it is gzip");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("it is JSON"))
        .collect()
}

/// Returns `true` if the layer lets a call pass. Arguments that are no object are refused before any layer.
async fn is_passed(schema: &Value, arguments: &Value) -> bool {
    let Ok(parsed) = Arguments::parse(arguments.to_string()) else {
        return false;
    };
    let script = ScriptedExecutor::new([ScriptStep::Echo]);
    let tool = TestTool::new("tool").input(schema.clone());
    let mut cx = context(tool, &script, serde_json::json!({}));
    cx.arguments = std::sync::Arc::new(parsed);
    let passed = ValidationLayer
        .layer(script.clone())
        .invoke(&mut cx)
        .await
        .is_ok();
    assert_eq!(script.n_calls(), usize::from(passed));
    passed
}

#[tokio::test]
async fn the_verdict_on_each_call_is_its_label() {
    let rows = rows();
    assert_eq!(rows.len(), 3103);
    let mut wrong = Vec::new();
    for row in &rows {
        let expected = row["valid"] == true;
        if is_passed(&row["input_schema"], &row["arguments"]).await != expected {
            wrong.push(format!(
                "{}: expected {expected}: {} under {}",
                row["id"],
                row["arguments"],
                RawJson::from(&row["input_schema"])
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} disagree:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
