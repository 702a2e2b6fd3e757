use mcp_wire::{Era, Revision, progress_token, without_progress_token};
use raw_json::RawJson;

use crate::raw;

#[test]
fn a_token_is_taken_out_and_nothing_else_moves() {
    assert_eq!(
        without_progress_token(&raw(r#"{"_meta":{"progressToken":5,"b":1e2},"n": 1}"#)).as_str(),
        r#"{"_meta":{"b":1e2},"n": 1}"#
    );
    assert_eq!(
        without_progress_token(&raw(r#"{"n": 1}"#)).as_str(),
        r#"{"n": 1}"#
    );
}

#[test]
fn a_token_is_a_string_or_a_number() {
    for (params, token) in [
        (r#"{"_meta":{"progressToken":"x"}}"#, Some(r#""x""#)),
        (r#"{"_meta":{"progressToken":0}}"#, Some("0")),
        (r#"{"_meta":{"progressToken":null}}"#, None),
        (r#"{"_meta":[]}"#, None),
        ("{}", None),
    ] {
        assert_eq!(
            progress_token(&raw(params)).as_ref().map(RawJson::as_str),
            token,
            "{params}"
        );
    }
}

#[test]
fn revisions_stand_in_order_and_negotiate() {
    assert!(Revision::ALL.is_sorted());
    for &revision in Revision::ALL {
        assert_eq!(revision.as_str().parse(), Ok(revision));
    }
    assert_eq!(Revision::LATEST.era(), Era::Modern);
    assert_eq!(Revision::negotiate("2024-11-05"), Revision::V2024_11_05);
    assert_eq!(Revision::negotiate("2026-07-28"), Revision::V2025_11_25);
    assert_eq!(Revision::negotiate("1999-01-01"), Revision::V2025_11_25);
    assert_eq!(
        "1.0".parse::<Revision>().unwrap_err().to_string(),
        "unknown protocol revision `1.0`"
    );
}
