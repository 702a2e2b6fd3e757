//! Tests of storages of pins.

use std::{
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use raw_json::RawJson;
use tool_core::Feature;
use tool_registry::{Pin, PinKey, Pins};

fn definition(text: &str) -> RawJson {
    RawJson::parse(text.to_owned()).expect("JSON")
}

fn pin(name: &str, text: &str) -> Pin {
    Pin::new(PinKey::new("files", Feature::Tool, name), definition(text))
}

/// Reads what another handle has written, until this many pins are known.
async fn refresh(pins: &Arc<dyn Pins>, n_pins: usize) {
    while pins.snapshot().len() != n_pins {
        pins.refresh().await.expect("readable");
        tokio::task::yield_now().await;
    }
}

/// An accepted pin has all its fields on every handle, and replaces the one before.
pub async fn an_accepted_definition_replaces_its_pin(one: Arc<dyn Pins>, other: Arc<dyn Pins>) {
    assert!(one.snapshot().is_empty());
    let at = UNIX_EPOCH + Duration::from_secs(60);
    let exact = pin("read", r#"{"name": "read"}"#)
        .with_version(Some("1.0.0"))
        .accepted(at, "ada");
    let shown = Pin::from_digest(
        PinKey::new("files", Feature::ResourceTemplate, "f://{x}"),
        [9; 32],
    )
    .with_shown_definition(definition("[]"));
    let bare = Pin::from_digest(PinKey::new("files", Feature::Prompt, "p"), [8; 32]);
    one.accept(vec![exact.clone(), shown.clone(), bare.clone()])
        .await
        .expect("stored");
    refresh(&other, 3).await;
    for set in [one.snapshot(), other.snapshot()] {
        for expected in [&exact, &shown, &bare] {
            let key = expected.key();
            let found = set.get(&key.source, key.feature, &key.name).expect("pinned");
            assert_eq!(&**found, expected);
            let text = |pin: &Pin| pin.definition().map(|definition| definition.as_str().to_owned());
            assert_eq!(text(found), text(expected));
            assert_eq!(found.accepted_at(), expected.accepted_at());
            assert_eq!(found.accepted_by(), expected.accepted_by());
        }
        let found = set.get("files", Feature::Tool, "read").expect("pinned");
        assert!(found.matches(&definition(r#"{"name":"read"}"#), Some("1.0.0")));
        assert!(!found.matches(&definition(r#"{"name":"other"}"#), Some("1.0.0")));
        let found = set
            .get("files", Feature::ResourceTemplate, "f://{x}")
            .expect("pinned");
        assert!(!found.matches(&definition("[]"), None), "the text lacks secrets");
    }
    let changed = pin("read", r#"{"name":"changed"}"#);
    other.accept(vec![changed.clone()]).await.expect("stored");
    assert_eq!(other.refresh().await, Ok(false), "it knows its own");
    while one
        .snapshot()
        .get("files", Feature::Tool, "read")
        .map(|pin| Pin::clone(pin))
        != Some(changed.clone())
    {
        assert_eq!(one.refresh().await, Ok(true));
    }
}

/// A definition of first use never replaces a pin, and reaches other handles.
pub async fn a_first_use_never_replaces_a_pin(one: Arc<dyn Pins>, other: Arc<dyn Pins>) {
    let first = pin("read", r#"{"n":1}"#);
    one.accept(vec![first.clone()]).await.expect("stored");
    // The other handle does not know that yet.
    other.add_first_used(vec![pin("read", r#"{"n":2}"#), pin("write", "{}")]);
    assert!(
        other.snapshot().get("files", Feature::Tool, "write").is_some(),
        "at once"
    );
    other.refresh().await.expect("readable");
    refresh(&one, 2).await;
    for set in [one.snapshot(), other.snapshot()] {
        assert_eq!(set.len(), 2);
        let found = set.get("files", Feature::Tool, "read").expect("pinned");
        assert_eq!(**found, first);
    }
}

/// A program that ends at once has stored its definitions of first use.
pub async fn definitions_of_first_use_are_flushed(one: Arc<dyn Pins>, other: Arc<dyn Pins>) {
    one.add_first_used(vec![pin("read", "{}")]);
    one.flush().await.expect("stored");
    assert_eq!(other.refresh().await, Ok(true), "no later than that");
    assert_eq!(other.snapshot().len(), 1);
    one.flush().await.expect("nothing is left");
}

/// Pins that are read in several parts come back with all their fields, whatever their texts contain.
pub async fn many_pins_come_back_as_they_were_stored(one: Arc<dyn Pins>, other: Arc<dyn Pins>) {
    const N_PINS: usize = 1300;
    let odd = [
        "\"",
        "\\",
        ",",
        "[",
        "]",
        "null",
        "\u{1}",
        "\u{1f}",
        "\n",
        "ü",
        "\u{1f600}",
        "'",
    ];
    let stored: Vec<Pin> = (0..N_PINS)
        .map(|n| {
            let odd = odd[n % odd.len()];
            let feature = Feature::ALL[n % Feature::ALL.len()];
            let key = PinKey::new(
                format!("source {}{odd}", n % 7),
                feature,
                format!("{odd}{n}{odd}"),
            );
            let text = RawJson::from(odd);
            let text = format!(r#"{{"name": {}, "n": [{n}, null, {{}}]}}"#, text.as_str());
            let pin = match n % 3 {
                0 => Pin::new(key, definition(&text)),
                1 => Pin::from_digest(key, [7; 32]).with_shown_definition(definition(&text)),
                _ => Pin::from_digest(key, [u8::try_from(n % 256).expect("below 256"); 32]),
            };
            let pin = pin.with_version((n % 5 == 0).then_some(odd));
            match n % 4 {
                0 => pin.accepted(UNIX_EPOCH + Duration::from_secs(n as u64), odd),
                _ => pin,
            }
        })
        .collect();
    one.accept(stored.clone()).await.expect("stored");
    refresh(&other, N_PINS).await;
    let found = other.snapshot();
    for expected in &stored {
        let key = expected.key();
        let pin = found.get(&key.source, key.feature, &key.name).expect("pinned");
        assert_eq!(**pin, *expected);
        let text = |pin: &Pin| pin.definition().map(|definition| definition.as_str().to_owned());
        assert_eq!(text(pin), text(expected), "{key:?}");
        assert_eq!(pin.accepted_at(), expected.accepted_at(), "{key:?}");
        assert_eq!(pin.accepted_by(), expected.accepted_by(), "{key:?}");
        let is_same = expected
            .definition()
            .map(|text| expected.matches(text, expected.version().map(|v| &**v)));
        let is_found = pin
            .definition()
            .map(|text| pin.matches(text, pin.version().map(|v| &**v)));
        assert_eq!(is_found, is_same, "{key:?}");
    }
}
