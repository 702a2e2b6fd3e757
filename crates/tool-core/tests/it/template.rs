use std::{
    collections::HashMap,
    future::{self, Future},
    pin::pin,
    task::{Context, Poll, Waker},
};

use tool_core::{BoxFuture, Provider, Reference, Secret, SecretError, Secrets, Template};

struct Known(HashMap<(Provider, &'static str), &'static str>);

impl Secrets for Known {
    fn get<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        let value = self
            .0
            .get(&(reference.provider, &*reference.name))
            .map(|value| Secret::new(*value));
        Box::pin(future::ready(Ok(value)))
    }

    fn has(&self, reference: &Reference) -> Result<bool, SecretError> {
        Ok(self.0.contains_key(&(reference.provider, &*reference.name)))
    }
}

/// Polls a future that never waits.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the future waits"),
    }
}

fn resolve(text: &str) -> Result<String, String> {
    let secrets = Known(HashMap::from([
        ((Provider::Environment, "TOKEN"), "t0k${EMPTY}{x}"),
        ((Provider::Environment, "EMPTY"), ""),
        ((Provider::File, "/run/secrets/x"), "from a file"),
        ((Provider::Secret, "db.password"), "s3cret"),
    ]));
    let template = Template::parse(text).map_err(|error| error.to_string())?;
    let resolved = now(template.resolve(&secrets)).map_err(|error| error.to_string())?;
    let has_all = template.check(&secrets).is_ok();
    assert!(has_all, "what resolves must also pass the check: {text}");
    Ok(resolved.expose().to_owned())
}

#[test]
fn references_get_their_values_once() {
    let cases = [
        ("plain", "plain"),
        ("", ""),
        ("Bearer ${TOKEN}", "Bearer t0k${EMPTY}{x}"),
        ("${env:TOKEN}", "t0k${EMPTY}{x}"),
        ("${file:/run/secrets/x}!", "from a file!"),
        ("${secret:db.password}", "s3cret"),
        ("${MISSING:-fallback}", "fallback"),
        ("${EMPTY:-fallback}", "fallback"),
        ("${EMPTY}", ""),
        ("${MISSING:-}", ""),
        ("${MISSING:-a:?b}", "a:?b"),
        ("$$HOME costs 5$", "$HOME costs 5$"),
        ("$${TOKEN}", "${TOKEN}"),
        ("a$b", "a$b"),
    ];
    for (text, expected) in cases {
        assert_eq!(resolve(text).as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn what_is_missing_or_malformed_says_so() {
    let cases = [
        ("${MISSING}", "is not set"),
        ("${MISSING:?run login first}", "run login first"),
        ("${EMPTY:?must not be empty}", "must not be empty"),
        ("${secret:other}", "is not among the configured secrets"),
        ("${TOKEN", "without a closing"),
        ("${vault:x}", "unknown provider `vault`"),
        ("${}", "no usable name"),
        ("${1A}", "no usable name"),
        ("${A B}", "no usable name"),
        ("${secret:}", "no usable name"),
    ];
    for (text, expected) in cases {
        let error = resolve(text).expect_err(text);
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn a_secret_does_not_show() {
    let secret = Secret::new("hunter2");
    assert_eq!(format!("{secret:?}"), "Secret(..)");
}
