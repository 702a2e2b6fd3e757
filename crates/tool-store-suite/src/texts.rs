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

/// Each of many keys gets its own text, also if it is wanted twice, and nothing else has one.
pub async fn many_texts_are_loaded_in_the_order_of_their_keys(
    one: Arc<dyn KeptTexts>,
    other: Arc<dyn KeptTexts>,
) {
    let mut keys: Vec<_> = (0..150)
        .map(|at| key(&format!("s{at}"), &format!("d{}", at % 7)))
        .collect();
    for key in keys.iter().step_by(3) {
        one.save(key.clone(), key.0.to_uppercase()).await.expect("saved");
    }
    one.save(key("s0", "of another digest"), "other".to_owned())
        .await
        .expect("saved");
    keys.extend([keys[3].clone(), key("", ""), keys[1].clone()]);
    let expected = keys.iter().enumerate().map(|(at, (name, _))| match at {
        0..150 => (at % 3 == 0).then(|| name.to_uppercase()),
        _ => (at == 150).then(|| "S3".to_owned()),
    });
    let expected: Vec<_> = expected.collect();
    assert_eq!(other.load(&keys).await, Ok(expected));
    assert_eq!(other.load(&[]).await, Ok(Vec::new()));
}
