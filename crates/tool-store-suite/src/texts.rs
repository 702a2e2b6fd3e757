//! Tests of storages of texts.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use tool_core::KeptTexts;

fn key(name: &str, digest: &str) -> (String, String) {
    (name.to_owned(), digest.to_owned())
}

/// Texts are found by name and digest, replaced, and forgotten by name.
pub async fn texts_are_saved_replaced_and_forgotten(one: Arc<dyn KeptTexts>, other: Arc<dyn KeptTexts>) {
    let keys = [key("a", "1"), key("a", "2"), key("b", "1")];
    assert_eq!(other.load(&keys).await, Ok(vec![None, None, None]));
    assert_eq!(other.forget(None).await, Ok(0));
    for (at, text) in [(0, "old"), (0, "{\"é\": 1e2}"), (2, "b")] {
        one.save(keys[at].clone(), text.to_owned()).await.expect("saved");
    }
    let found = other.load(&keys).await.expect("readable");
    assert_eq!(
        found,
        [Some("{\"é\": 1e2}".to_owned()), None, Some("b".to_owned())]
    );
    let kept = other.kept_at().await.expect("readable");
    let names: Vec<&str> = kept.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    let age = SystemTime::now().duration_since(kept[0].1).unwrap_or_default();
    assert!(age < Duration::from_secs(600), "{age:?}");
    one.save(keys[1].clone(), "x".repeat(2 << 20))
        .await
        .expect("saved");
    assert_eq!(other.forget(Some("a")).await, Ok(2));
    assert_eq!(one.load(&keys).await, Ok(vec![None, None, Some("b".to_owned())]));
    assert_eq!(one.forget(None).await, Ok(1));
}
