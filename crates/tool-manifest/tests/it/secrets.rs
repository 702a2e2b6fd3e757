//! The values of `${…}` references.

use std::{
    collections::BTreeMap,
    fs,
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

use tool_core::Template;
use tool_manifest::ProcessSecrets;

/// Resolves at once: these values never wait.
fn resolve(template: &str, secrets: &ProcessSecrets) -> Result<String, String> {
    let template = Template::parse(template).unwrap();
    let checked = template.check(secrets);
    let mut future = pin!(template.resolve(secrets));
    let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("a value waited");
    };
    assert_eq!(
        checked.is_ok(),
        value.is_ok(),
        "check and use disagree: {checked:?}"
    );
    value
        .map(|value| value.expose().to_owned())
        .map_err(|error| error.to_string())
}

#[test]
fn variables_files_and_names() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("token"), "abc\r\n").unwrap();
    fs::write(directory.path().join("lines"), "a\n\n").unwrap();
    fs::write(directory.path().join("large"), "x".repeat(64 * 1024 + 1)).unwrap();
    let secrets = BTreeMap::from([
        ("key".to_owned(), Template::parse("${file:token}").unwrap()),
        ("gone".to_owned(), Template::parse("${env:GONE}").unwrap()),
    ]);
    let secrets = ProcessSecrets::fixed([("A", "1"), ("EMPTY", ""), ("CODE", "${A}")], secrets)
        .relative_to(directory.path());

    for (template, value) in [
        ("${A}-${env:A}", "1-1"),
        ("${EMPTY:-none}", "none"),
        ("${GONE:-}", ""),
        ("${CODE}", "${A}"),
        ("Bearer ${file:token}", "Bearer abc"),
        ("${file:lines}", "a\n"),
        ("${secret:key}", "abc"),
    ] {
        assert_eq!(resolve(template, &secrets).as_deref(), Ok(value), "{template}");
    }
    for (template, message) in [
        (
            "${GONE}",
            "`${GONE}` is not set; export it or give a default with `:-`",
        ),
        ("${EMPTY:?fill it in}", "`${EMPTY}` fill it in"),
        ("${file:missing}", "`${file:missing}` cannot be read"),
        ("${file:large}", "`${file:large}` has more than 65536 bytes"),
        ("${file:.}", "`${file:.}` is no regular file"),
        (
            "${secret:other}",
            "`${secret:other}` is not among the configured secrets",
        ),
        (
            "${secret:gone}",
            "`${GONE}` is not set; export it or give a default with `:-`",
        ),
    ] {
        assert_eq!(resolve(template, &secrets), Err(message.to_owned()), "{template}");
    }
}

#[test]
fn nothing_of_them_is_shown() {
    let secrets = ProcessSecrets::fixed([("A", "hidden")], BTreeMap::new());
    assert!(!format!("{secrets:?}").contains("hidden"));
}
