//! Tests of storages of usage. `one` and `other` are two handles to one storage.

use std::{sync::Arc, time::Duration};

use tool_core::{DailyUsage, UsageFigures, UsageKey, UtcDay};

const TODAY: UtcDay = UtcDay::from_number(20_000);

fn key(day: UtcDay, principal: &str, tool: &str) -> UsageKey {
    UsageKey::new(day, "default", principal, tool)
}

/// Figures of one call that took this long.
fn call(milliseconds: u64) -> UsageFigures {
    let mut figures = UsageFigures::default();
    figures.n_calls = 1;
    figures.n_attempts = 2;
    figures.argument_bytes = 10;
    figures.result_bytes = 1 << 40;
    figures.cost = 5;
    figures.time = Duration::from_millis(milliseconds);
    figures.latencies.add(figures.time);
    figures
}

async fn read(usage: &Arc<dyn DailyUsage>) -> Vec<(UsageKey, UsageFigures)> {
    let days = UtcDay::FIRST..=TODAY;
    usage.read(days).await.expect("it works")
}

/// Figures of a key are added to those that are stored; other keys have their own.
pub async fn figures_are_added_up_for_each_key(one: Arc<dyn DailyUsage>, other: Arc<dyn DailyUsage>) {
    assert_eq!(read(&one).await, []);
    let with_server = key(TODAY, "ada", "a")
        .with_version(Some("1.0.0".into()))
        .with_server(Some("files".into()));
    let yesterday = key(TODAY.days_before(1), "ada", "é");
    let keys = [key(TODAY, "bob", "a"), with_server.clone(), yesterday.clone()];
    let first: Vec<_> = keys.iter().map(|key| (key.clone(), call(10))).collect();
    one.add(&first).await.expect("it works");
    let mut cached = UsageFigures::default();
    (
        cached.n_calls,
        cached.n_cached,
        cached.saved_cost,
        cached.n_errors,
    ) = (1, 1, 7, 1);
    let second = [
        (with_server.clone(), call(500)),
        (with_server.clone(), cached.clone()),
    ];
    other.add(&second).await.expect("it works");
    let mut sum = call(10);
    sum.add(&call(500));
    sum.add(&cached);
    let expected = [
        (yesterday.clone(), call(10)),
        (with_server, sum),
        (key(TODAY, "bob", "a"), call(10)),
    ];
    assert_eq!(read(&one).await, expected);
    let of_yesterday = one.read(yesterday.day..=yesterday.day).await.expect("it works");
    assert_eq!(of_yesterday, expected[..1]);
}

/// Many additions at once, in any order of their keys, all count.
pub async fn nothing_of_two_gateways_is_lost(one: Arc<dyn DailyUsage>, other: Arc<dyn DailyUsage>) {
    const N: u64 = 12;
    let additions = (0..N).map(|index| {
        let usage = if index % 2 == 0 {
            one.clone()
        } else {
            other.clone()
        };
        tokio::spawn(async move {
            let mut keys = [
                key(TODAY, "ada", "a"),
                key(TODAY, "ada", "b"),
                key(TODAY, "bob", "a"),
            ];
            let n_keys = keys.len() as u64;
            keys.rotate_left((index % n_keys) as usize);
            let figures = keys.map(|key| (key, call(index)));
            usage.add(&figures).await.expect("it works");
        })
    });
    for addition in additions.collect::<Vec<_>>() {
        addition.await.expect("no panic");
    }
    let mut sum = UsageFigures::default();
    (0..N).for_each(|index| sum.add(&call(index)));
    for (key, figures) in read(&one).await {
        assert_eq!(figures, sum, "{key:?}");
    }
    assert_eq!(read(&other).await.len(), 3);
}

/// Days before the given one are deleted, and that day is not.
pub async fn old_days_are_forgotten(one: Arc<dyn DailyUsage>, other: Arc<dyn DailyUsage>) {
    let days = [0, 1, 2].map(|n| TODAY.days_before(n));
    let figures = days.map(|day| (key(day, "ada", "a"), call(1)));
    one.add(&figures).await.expect("it works");
    other.forget(TODAY.days_before(1)).await.expect("it works");
    let left: Vec<_> = read(&one).await.into_iter().map(|(key, _)| key.day).collect();
    assert_eq!(left, [TODAY.days_before(1), TODAY]);
}
