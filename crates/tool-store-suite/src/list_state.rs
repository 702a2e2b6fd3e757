//! Test of the state by which a gateway finds out that lists of tools are as they were.

use std::{sync::Arc, time::UNIX_EPOCH};

use raw_json::RawJson;
use serde_json::json;
use tool_core::{Feature, KeptTexts};
use tool_registry::{Pin, PinKey, Pins, ServerRecord, Store};
use tool_store_sql::{Database, SqlPins, SqlStore};

/// The state changes with everything that lists are made of, for every handle, and with nothing else.
pub async fn the_state_of_lists_changes_with_what_they_are_made_of<D: Database>(
    one: Arc<SqlStore<D>>,
    other: Arc<SqlStore<D>>,
) {
    let state = async || other.list_state().await.expect("readable");
    let pins = SqlPins::load(one.clone()).await.expect("readable");
    let pin = |name: &str| Pin::from_digest(PinKey::new("files", Feature::Tool, name), [1; 32]);
    let key = |digest: &str| ("files".to_owned(), digest.to_owned());
    let save = async |digest: &str, text: &str| {
        let saved = one.save(key(digest), text.to_owned()).await;
        saved.expect("saved");
    };
    save("1", "a").await;
    let mut seen = vec![state().await];
    assert!(seen[0].is_some());
    for step in 0..7 {
        match step {
            0 => save("1", "b").await,
            1 => save("2", "b").await,
            2 => drop(one.forget(Some("files")).await.expect("forgotten")),
            3 => pins.accept(vec![pin("read")]).await.expect("stored"),
            4 => {
                pins.add_first_used(vec![pin("write")]);
                pins.flush().await.expect("stored");
            }
            5 => {
                let settings = RawJson::from(json!({"command": "npx"}));
                let server = ServerRecord::new("files", settings, UNIX_EPOCH);
                one.set_server("files", Some(server)).await.expect("set");
            }
            _ => save("1", "b").await,
        }
        let now = state().await;
        assert!(!seen.contains(&now), "step {step}: {now:?} after {seen:?}");
        assert_eq!(one.list_state().await.expect("readable"), now);
        seen.push(now);
    }
    let last = seen.pop().expect("a state");
    // Read again from the server, as it is kept: nothing is new.
    save("1", "b").await;
    pins.flush().await.expect("stored");
    pins.refresh().await.expect("readable");
    one.secret("request_state").await.expect("stored");
    assert_eq!(state().await, last);
}
