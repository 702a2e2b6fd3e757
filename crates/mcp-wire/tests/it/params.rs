use mcp_wire::Params;
use proptest::{collection::vec, prelude::*};
use raw_json::{RawJson, digest};

use crate::{deterministic, raw};

fn written(params: &Params) -> String {
    let frame = String::from_utf8(mcp_wire::request(1, "m", params)).unwrap();
    let rest = frame
        .strip_prefix(r#"{"jsonrpc":"2.0","id":1,"method":"m""#)
        .unwrap();
    rest.strip_suffix('}').unwrap().to_owned()
}

fn objects() -> [(&'static str, &'static str); 4] {
    [
        (r"{}", "{"),
        ("{ \n}", "{"),
        (r#"{"a":1e2}"#, r#"{"a":1e2,"#),
        ("{\"a\": [ ] \t}", r#"{"a": [ ],"#),
    ]
}

#[test]
fn nothing_is_not_written() {
    assert!(Params::default().is_empty());
    assert_eq!(written(&Params::default()), "");
    assert_eq!(written(&None.into()), "");
    assert_eq!(written(&raw("{ }").into()), r#","params":{ }"#);
}

#[test]
fn members_stand_behind_those_of_the_object() {
    for (object, open) in objects() {
        let mut params = Params::from(raw(object));
        assert_eq!(written(&params), format!(r#","params":{object}"#));
        params.push("b", raw("[1, 2]"));
        params.push("c\"", raw("null"));
        let expected = format!(r#","params":{open}"b":[1, 2],"c\"":null}}"#);
        assert_eq!(written(&params), expected);
        assert_eq!(params.get("b"), Some(raw("[1, 2]")));
        assert_eq!(params.get("a"), raw(object).get("a"));
        assert_eq!(params.get("d"), None);
    }
    let members = vec![("b", raw("1")), ("c", raw("{}"))];
    assert_eq!(written(&members.into()), r#","params":{"b":1,"c":{}}"#);
}

#[test]
fn what_is_no_object_makes_room_for_members() {
    for other in ["[1]", "7", r#""text""#, "null"] {
        let mut params = Params::from(raw(other));
        assert_eq!(written(&params), format!(r#","params":{other}"#));
        params.push("a", raw("1"));
        assert_eq!(written(&params), r#","params":{"a":1}"#);
    }
}

#[test]
fn a_member_of_meta_is_replaced_and_nothing_else_moves() {
    let token = [("progressToken", RawJson::from(5))];
    for (before, after) in [
        (r"{}", r#"{"_meta":{"progressToken":5}}"#),
        ("[1]", r#"{"_meta":{"progressToken":5}}"#),
        (
            r#"{ "name":"t" }"#,
            r#"{ "name":"t","_meta":{"progressToken":5}}"#,
        ),
        (
            r#"{"_meta":{"a":1e2,"progressToken":"x"},"n":1}"#,
            r#"{"_meta":{"a":1e2,"progressToken":5},"n":1}"#,
        ),
        (r#"{"_meta":{}}"#, r#"{"_meta":{"progressToken":5}}"#),
        (r#"{"_meta":null}"#, r#"{"_meta":{"progressToken":5}}"#),
    ] {
        let mut params = Params::from(raw(before));
        params.add_to_meta(&token);
        assert_eq!(written(&params), format!(r#","params":{after}"#));
    }
    for (before, after) in [
        (r#"{"a":1e2}"#, r#"{"a":1e2,"progressToken":5}"#),
        (
            r#"{"progressToken": "x", "a": 1}"#,
            r#"{"progressToken": 5, "a": 1}"#,
        ),
        ("null", r#"{"progressToken":5}"#),
    ] {
        let mut params = Params::from(vec![("_meta", raw(before)), ("n", raw("1"))]);
        params.add_to_meta(&token);
        assert_eq!(
            written(&params),
            format!(r#","params":{{"_meta":{after},"n":1}}"#)
        );
    }
}

#[test]
fn members_pushed_to_meta_stand_behind_its_own_wherever_it_stands() {
    for (object, expected) in [
        (r"{}", r#"{"_meta":{"p":1,"q":[ ]}}"#),
        ("[1]", r#"{"_meta":{"p":1,"q":[ ]}}"#),
        (r#"{"n":1 }"#, r#"{"n":1,"_meta":{"p":1,"q":[ ]}}"#),
        (
            r#"{"_meta":{"a":1e2},"n":1}"#,
            r#"{"_meta":{"a":1e2,"p":1,"q":[ ]},"n":1}"#,
        ),
        (r#"{"_meta":7,"n":1}"#, r#"{"_meta":{"p":1,"q":[ ]},"n":1}"#),
    ] {
        let mut params = Params::from(raw(object));
        params.push_to_meta("p", raw("1"));
        params.push_to_meta("q", raw("[ ]"));
        assert_eq!(written(&params), format!(r#","params":{expected}"#));
        assert!(!params.is_empty());
        let meta = raw(expected).get("_meta");
        assert_eq!(
            params.get("_meta").as_ref().map(RawJson::as_str),
            meta.as_ref().map(RawJson::as_str)
        );
    }
}

/// Change of parameters.
#[derive(Debug, Clone)]
enum Step {
    /// `add_to_meta` with these keys.
    Add(Vec<usize>),
    /// `add_object_to_meta` with these keys.
    AddObject(Vec<usize>),
    /// `push_to_meta` with a key of its own.
    Push,
    /// `push` with a key of its own.
    Member,
}

const KEYS: [&str; 4] = ["a", "b", "c", "d"];
const OWN: [&str; 8] = ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"];

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let keys = || vec(0..KEYS.len(), 0..3);
    let step = prop_oneof![
        keys().prop_map(Step::Add),
        keys().prop_map(Step::AddObject),
        Just(Step::Push),
        Just(Step::Member),
    ];
    vec(step, 0..OWN.len())
}

proptest! {
    #![proptest_config(deterministic(512))]

    /// Changes in any order produce the same message as adding the members to a plain object.
    #[test]
    fn what_is_written_is_what_was_added(
        steps in steps(),
        start in prop_oneof![
            Just("{}"),
            Just(r#"{"x":{"_meta":1}}"#),
            Just(r#"{"_meta":{"a":0,"z":1e2}}"#),
            Just(r#"{"_meta":[],"y":1}"#),
        ],
        in_members in any::<bool>(),
    ) {
        let (mut params, mut whole) = (Params::from(raw(start)), raw(start));
        if in_members {
            params = Params::default();
            if let Some(meta) = whole.get("_meta") {
                params.push("_meta", meta);
            }
            whole = whole.without_members(&["x", "y"]).unwrap();
        }
        for (number, step) in steps.iter().enumerate() {
            let value = RawJson::from(number as u64);
            let chosen = |keys: &[usize]| {
                let mut keys: Vec<_> = keys.iter().map(|key| KEYS[*key]).collect();
                keys.sort_unstable();
                keys.dedup();
                keys.into_iter().map(|key| (key, value.clone())).collect::<Vec<_>>()
            };
            let own = (OWN[number], value.clone());
            match step {
                Step::Add(keys) => {
                    whole = whole.with_members_in("_meta", &chosen(keys)).unwrap();
                    params.add_to_meta(&chosen(keys));
                }
                Step::AddObject(keys) => {
                    whole = whole.with_members_in("_meta", &chosen(keys)).unwrap();
                    params.add_object_to_meta(&RawJson::object().with_members(&chosen(keys)).unwrap());
                }
                Step::Push => {
                    whole = whole.with_members_in("_meta", std::slice::from_ref(&own)).unwrap();
                    params.push_to_meta(own.0, own.1);
                }
                Step::Member => {
                    whole = whole.with_members(std::slice::from_ref(&own)).unwrap();
                    params.push(own.0, own.1);
                }
            }
        }
        let frame = mcp_wire::request(1, "m", &params);
        // The parser of messages takes no key twice.
        let message = mcp_wire::Message::from_client(frame);
        let Ok(mcp_wire::Message::Request(request)) = message else {
            panic!("{message:?}")
        };
        let sent = request.params.unwrap_or(RawJson::object());
        prop_assert_eq!(digest(&sent), digest(&whole), "{} {}", sent, whole);
        let meta = params.get("_meta").as_ref().map(digest);
        prop_assert_eq!(meta, whole.get("_meta").as_ref().map(digest));
    }
}
