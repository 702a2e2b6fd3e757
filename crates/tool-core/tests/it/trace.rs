//! What is taken for a trace, by the examples and rules of W3C Trace Context.

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

#[test]
fn a_state_that_cannot_be_passed_on_is_left_out() {
    let state = |state: &str| TraceContext::parse(PARENT, Some(state)).unwrap().tracestate;
    assert!(state(&"a".repeat(512)).is_some());
    assert!(state(&"a=b,".repeat(32)).is_some());
    assert_eq!(state(&"a=b,".repeat(33)), None);
    for bad in [&*"a".repeat(513), "", "a=b\r\nx: y", "a=\u{7f}", "a=é"] {
        assert_eq!(state(bad), None, "{bad}");
    }
}
