//! The fast reader of plain manifests: it returns what the other reader returns, or nothing.

use proptest::prelude::*;
use tool_core::{Descriptor, RawJson};
use toolplane::manifest::{LoadOptions, Syntax, load, read_plain};

/// Members of `spec` that are plain.
const PLAIN: [&str; 17] = [
    r#""title":"A \"title\"\nof two lines""#,
    r#""title":null"#,
    r#""version":"1.2.0""#,
    r#""input_schema":{"properties":{"order":{"type":"string","minLength":1}},"required":["order"]}"#,
    r#""input_schema":{"type":"object","additionalProperties":false,"description":"Größe \\d+"}"#,
    r#""inputSchema":{"type":"object","properties":{"limit":{"maximum":100.5,"minimum":-1}}}"#,
    r#""input_schema":null"#,
    r#""output_schema":{"type":"array","items":{"enum":[1,null,true,"a"]}}"#,
    r#""outputSchema":{}"#,
    r#""capabilities":["search","realtime-data"]"#,
    r#""tags":["production-ready"]"#,
    r#""aliases":["wetter"],"examples":["Is it raining?"]"#,
    r#""retryable":true,"idempotent":false"#,
    r#""read_only":true"#,
    r#""readOnly":null"#,
    r#""required_permissions":["network.external"]"#,
    r#""requiredPermissions":[]"#,
];

/// Members of `spec` that only the other reader takes, or refuses.
const OTHERS: [&str; 22] = [
    r#""title": "spaced""#,
    r#""title":7"#,
    r#""title":"\u00e9""#,
    r#""title":"\ud800""#,
    r#""version":1.5"#,
    r#""description":"Again.""#,
    r#""input_schema":true"#,
    r#""input_schema":{"type":"string"}"#,
    r#""input_schema":{"type":["object"]}"#,
    r#""input_schema":{"type":"object","type":"object"}"#,
    r#""input_schema":{"properties":{"a":{"maximum":1e999}}}"#,
    r#""output_schema":{"maximum":1e2}"#,
    r#""output_schema":[]"#,
    r#""output_schema":{"enum":["\/"]}"#,
    r#""parameters":[{"name":"order","type":"string"}]"#,
    r#""timeout_ms":500"#,
    r#""retry":{"max_attempts":3}"#,
    r#""fallbacks":["other"]"#,
    r#""latency":"fast""#,
    r#""tags":[null,"a"]"#,
    r#""colour":"blue""#,
    r#""idempotent":"yes""#,
];

const EXECUTORS: [&str; 3] = [
    r#""executor":{"kind":"mock","result":{"z":1,"a":[1.5,"${NAME}",123456789012345678901]}}"#,
    r#""executor":{"url":"https://api.example.com/{order}","kind":"http","method":"POST"}"#,
    r#""executor":{"kind":"mock","result_file":"a//b.json"}"#,
];

const BAD_EXECUTORS: [&str; 5] = [
    r#""executor":null"#,
    r#""executor":{"result":1}"#,
    r#""executor":{"kind":""}"#,
    r#""executor":{"kind":"mock","result":1,"result":2}"#,
    r#""executor":{"kind":"mcp","server":"files","tool":"read"}"#,
];

fn document(members: &[&str]) -> RawJson {
    let spec = members.join(",");
    let text = format!(
        r#"{{"apiVersion":"toolplane.dev/v1","kind":"Tool","metadata":{{"name":"find"}},"spec":{{"description":"Finds.",{spec}}}}}"#
    );
    RawJson::parse(text).unwrap()
}

fn plain(manifest: &RawJson) -> Option<Descriptor> {
    read_plain("find", manifest, toolplane::sections())
}

/// Returns what the other reader makes of a document.
fn loaded(manifest: &RawJson) -> Option<Descriptor> {
    let options = LoadOptions::new().text("find", Syntax::Json, manifest.as_str());
    let tools = load(&options).ok()?.configuration.tools;
    let [only] = <[_; 1]>::try_from(tools).ok()?;
    Some((*only).clone())
}

#[test]
fn every_plain_member_is_read_as_by_the_other_reader() {
    for executor in EXECUTORS {
        for member in PLAIN {
            let manifest = document(&[member, executor]);
            let read = plain(&manifest);
            assert!(read.is_some(), "{member}");
            assert_eq!(read, loaded(&manifest), "{member}");
        }
    }
}

#[test]
fn everything_else_is_left_to_the_other_reader() {
    for member in OTHERS {
        assert_eq!(plain(&document(&[member, EXECUTORS[0]])), None, "{member}");
    }
    for executor in BAD_EXECUTORS {
        assert_eq!(plain(&document(&[executor])), None, "{executor}");
    }
    let whole = document(&EXECUTORS[..1]);
    for (part, other) in [
        ("toolplane.dev/v1", "toolplane.dev/v2"),
        (r#""Tool""#, r#""Policy""#),
        (r#""find""#, r#""find it""#),
        (r#""find""#, r#""find","labels":{"a":"b"}"#),
        (r#"{"apiVersion""#, r#"{"x":1,"apiVersion""#),
        (r#""spec""#, "\n\"spec\""),
    ] {
        let changed = whole.as_str().replacen(part, other, 1);
        assert_ne!(changed, whole.as_str());
        assert_eq!(plain(&RawJson::parse(changed).unwrap()), None, "{other}");
    }
    let nested = |depth: usize| {
        let schema = format!(
            r#""output_schema":{{"a":{}{}}}"#,
            "[".repeat(depth),
            "]".repeat(depth)
        );
        document(&[&schema, EXECUTORS[0]])
    };
    // The manifest, its `spec` and the schema are three levels.
    assert!(plain(&nested(61)).is_some());
    assert_eq!(plain(&nested(61)), loaded(&nested(61)));
    assert_eq!((plain(&nested(62)), loaded(&nested(62))), (None, None));
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: proptest::test_runner::RngSeed::Fixed(22), cases: 2000, ..ProptestConfig::default()
    })]

    #[test]
    fn a_manifest_that_is_read_is_read_as_by_the_other_reader(
        plain_members in proptest::sample::subsequence(PLAIN.to_vec(), 0..6),
        others in proptest::sample::subsequence(OTHERS.to_vec(), 0..2),
        executor in proptest::sample::select([&EXECUTORS[..], &BAD_EXECUTORS[..1]].concat()),
        text in "\\PC{0,12}",
    ) {
        let title = format!(r#""examples":[{}]"#, RawJson::from(text.as_str()).as_str());
        let mut members: Vec<&str> = plain_members.into_iter().chain(others).collect();
        members.push(executor);
        members.push(&title);
        let manifest = document(&members);
        if let Some(read) = plain(&manifest) {
            prop_assert_eq!(Some(read), loaded(&manifest));
        }
    }
}
