//! Real schemas and calls, and the JSON Schema Test Suite: see `fixtures/README.md`.

use raw_json::RawJson;
use serde_json::{Value, json};
use tool_schema::CheckError;
use tool_schema::{Schema, verify};

fn rows(text: &str) -> impl Iterator<Item = Value> + '_ {
    text.lines()
        .map(|line| serde_json::from_str(line).expect("a row is JSON"))
}

#[test]
fn real_calls_are_judged_right() {
    for row in rows(include_str!("../fixtures/calls.jsonl")) {
        let schema = Schema::compile(&RawJson::from(&row["input_schema"])).unwrap();
        let outcome = schema.check(&row["arguments"]);
        assert_eq!(
            outcome.is_ok(),
            row["valid"] == true,
            "{}: {outcome:?}",
            row["id"]
        );
        if let Err(CheckError::Mismatch(mismatch)) = outcome {
            for problem in &mismatch.problems {
                assert!(
                    row["arguments"].pointer(&problem.path).is_some(),
                    "{}: {mismatch}",
                    row["id"]
                );
                assert_ne!(problem.keyword, "$schema", "{}: {mismatch}", row["id"]);
            }
        }
    }
}

#[test]
fn real_schemas_are_usable_or_not() {
    for row in rows(include_str!("../fixtures/schemas.jsonl")) {
        let schema = RawJson::from(&row["input_schema"]);
        let verified = verify(&schema);
        assert_eq!(
            verified.is_ok(),
            row["usable"] == true,
            "{}: {verified:?}",
            row["tool"]
        );
        if verified.is_ok() {
            let compiled = Schema::compile(&schema).unwrap();
            assert_eq!(compiled.warnings(), [], "{}", row["tool"]);
        }
    }
}

/// Returns the schema with an addition that makes every check count its steps.
fn counted(schema: &Value) -> Option<Value> {
    let mut counted = schema.clone();
    let definitions = counted
        .as_object_mut()?
        .entry("$defs")
        .or_insert_with(|| json!({}));
    definitions
        .as_object_mut()?
        .insert("opaque".to_owned(), json!({"unevaluatedItems": true}));
    Some(counted)
}

#[test]
fn the_suite_is_passed_both_ways() {
    for row in rows(include_str!("../fixtures/suite.jsonl")) {
        let uri = match row["draft"].as_str().unwrap() {
            "draft4" => "http://json-schema.org/draft-04/schema#",
            "draft7" => "http://json-schema.org/draft-07/schema#",
            _ => "https://json-schema.org/draft/2020-12/schema",
        };
        let mut schema = row["schema"].clone();
        if let Some(members) = schema.as_object_mut() {
            members.entry("$schema").or_insert_with(|| json!(uri));
        }
        for schema in [Some(schema.clone()), counted(&schema)].into_iter().flatten() {
            let compiled = Schema::compile(&RawJson::from(&schema))
                .unwrap_or_else(|error| panic!("{}: {error}", row["of"]));
            for test in row["tests"].as_array().unwrap() {
                let fits = compiled.check(&test[0]).is_ok();
                assert_eq!(fits, test[1] == true, "{}: {}", row["of"], test[0]);
            }
        }
    }
}
