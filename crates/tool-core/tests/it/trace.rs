//! Trace contexts, by the examples and rules of W3C Trace Context.

use proptest::prelude::*;
use tool_core::TraceContext;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

#[test]
fn a_parent_is_read_and_written() {
    let context = TraceContext::parse(PARENT, Some("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE")).unwrap();
    assert_eq!(context.trace_id, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
    assert_eq!(context.span_id, 0x00f0_67aa_0ba9_02b7);
    assert!(context.is_sampled());
    assert_eq!(
        context.tracestate.as_deref(),
        Some("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE")
    );
    assert_eq!(context.to_string(), PARENT);
}

#[test]
fn a_later_version_is_read_as_far_as_it_is_known() {
    let later = "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff-what-ever";
    let context = TraceContext::parse(later, None).unwrap();
    assert_eq!(
        context.to_string(),
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03"
    );
}

#[test]
fn what_is_no_parent_is_none() {
    let cases = [
        "",
        "00",
        "00-a",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
        "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01more",
        "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473é-00f067aa0ba902b7-01",
    ];
    for text in cases {
        assert_eq!(TraceContext::parse(text, None), None, "{text}");
    }
}

fn state(state: &str) -> Option<String> {
    let context = TraceContext::parse(PARENT, Some(state)).expect("the parent is valid");
    context.tracestate.as_deref().map(str::to_owned)
}

#[test]
fn a_state_that_cannot_be_passed_on_is_left_out() {
    let members = |n: usize| (0..n).map(|n| format!("a{n}=b,")).collect::<String>();
    assert!(state(&format!("a={}", "b".repeat(256))).is_some());
    assert!(state(&members(32)).is_some());
    assert_eq!(state(&members(33)), None);
    let (long, long_value) = (
        "a=b,".to_owned() + &" ".repeat(509),
        format!("a={}", "b".repeat(257)),
    );
    for bad in [
        &*long,
        &*long_value,
        "",
        "a",
        "=b",
        "A=b",
        "1a=b",
        "a@1=b",
        "a=",
        "a=b=c",
        "a=b\r\nx: y",
        "a=\u{7f}",
        "a=é",
    ] {
        assert_eq!(state(bad), None, "{bad}");
    }
}

#[test]
fn members_of_a_state_that_are_none_are_left_out() {
    for (text, expected) in [
        ("a=1, b=2", "a=1, b=2"),
        ("1t@sys=x y,rojo= 1", "1t@sys=x y,rojo= 1"),
        ("a=1,\tb=2", "a=1,b=2"),
        ("a=1,bad,b=2", "a=1,b=2"),
        ("a=1,a=2,b=3", "a=1,b=3"),
        ("B=1,a=\n,c=3", "c=3"),
    ] {
        assert_eq!(state(text).as_deref(), Some(expected), "{text:?}");
    }
}

proptest! {
    #[test]
    fn whatever_is_passed_on_is_a_state(
        text in "([a-zA-Z0-9@*/_=\n\t é-]{0,20}(=[ -~]{0,12})?,){0,40}|.{0,600}",
        parent in "[0-9a-f-]{0,80}|.{0,80}",
    ) {
        prop_assert!(TraceContext::parse(&parent, None).is_none_or(|context| context.to_string().len() == 55));
        if let Some(state) = state(&text) {
            prop_assert!(state.len() <= 512 && state.bytes().all(|byte| matches!(byte, b' '..=b'~')));
            let members: Vec<&str> = state.split(',').map(str::trim_ascii).filter(|member| !member.is_empty()).collect();
            prop_assert!((1..=32).contains(&members.len()));
            for member in members {
                let (key, value) = member.split_once('=').expect("a key and a value");
                prop_assert!(key.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit()));
                prop_assert!(!key.contains(|c: char| c.is_ascii_uppercase() || c == ' '));
                prop_assert!(!value.is_empty() && !value.contains('='));
                prop_assert!(text.contains(member));
            }
        }
    }
}
