//! Settings of calls with an idempotency key: the keys of a file.

use std::time::Duration;

use tool_runtime::{IdempotencyKeyPlace, IdempotencySettings, LedgerCapacity};
use toolplane::manifest::{LoadOptions, Syntax, load};

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn by_default_of_a_server_and_of_a_tool() {
    let text = "
defaults:
  idempotency: {ttl: 1h, max_entries: 500, max_bytes: 1MiB}
servers:
  a: {command: x, idempotency: {ttl: 2h, argument: request_id}}
  b: {command: x, idempotency: {meta: example.com/key}}
tools:
  pay:
    description: Pays.
    idempotency: {ttl: 3h}
    executor: {kind: mock, result: 1}
";
    let options = LoadOptions::new().text("toolplane.yaml", Syntax::Yaml, text);
    let configuration = load(&options).expect("usable").configuration;
    let defaults = configuration.defaults;
    assert_eq!(
        defaults
            .overrides
            .get::<IdempotencySettings>()
            .map(|settings| settings.ttl),
        Some(HOUR)
    );
    let capacity = defaults.overrides.get::<LedgerCapacity>().expect("given");
    assert_eq!(
        (capacity.max_entries, capacity.max_bytes),
        (Some(500), Some(1 << 20))
    );
    let [a, b] = &configuration.servers[..] else {
        panic!("two servers")
    };
    assert_eq!(
        a.overrides
            .get::<IdempotencySettings>()
            .map(|settings| settings.ttl),
        Some(2 * HOUR)
    );
    assert_eq!(
        a.overrides.get(),
        Some(&IdempotencyKeyPlace::Argument("request_id".to_owned()))
    );
    assert_eq!(
        b.overrides.get(),
        Some(&IdempotencyKeyPlace::Meta("example.com/key".to_owned()))
    );
    assert_eq!(
        configuration.tools[0]
            .overrides
            .get::<IdempotencySettings>()
            .map(|settings| settings.ttl),
        Some(3 * HOUR)
    );
}

#[test]
fn what_cannot_be_meant() {
    for (line, expected) in [
        ("idempotency: {ttl: 0s}", "longer than 0"),
        ("idempotency: {tll: 1h}", "`tll`"),
        ("idempotency: {meta: a, argument: b}", "in one way only"),
        ("idempotency: {argument: \"\"}", "names nothing"),
    ] {
        let text = format!("servers:\n  a:\n    command: x\n    {line}\n");
        let problems = load(&LoadOptions::new().text("a.yaml", Syntax::Yaml, text)).expect_err(line);
        let said = problems.render(false);
        assert!(
            said.contains(expected) && said.contains("a.yaml:4"),
            "{line}: {said}"
        );
    }
}
