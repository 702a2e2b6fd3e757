use mcp_wire::Params;
use raw_json::RawJson;

use crate::raw;

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
