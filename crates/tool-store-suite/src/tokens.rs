//! Tests of stores of tokens.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tool_core::{TokenRecord, Tokens, TokensError};

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

fn token(id: &str, created_at: u64) -> TokenRecord {
    TokenRecord::new(id, [7; 32], "ada", at(created_at))
}

/// A stored token has all its fields, and tokens are listed in the order of their creation.
pub async fn a_token_comes_back_as_it_was_stored(first: Arc<dyn Tokens>, second: Arc<dyn Tokens>) {
    assert_eq!(second.find("a").await, Ok(None));
    let mut full = token("b", 200);
    full.tenant = Some("acme".into());
    full.roles = vec!["reader".into(), "wri\"ter".into()];
    full.label = Some("laptop".to_owned());
    full.expires_at = Some(at(300));
    first.insert(full.clone()).await.expect("stored");
    first.insert(token("c", 200)).await.expect("stored");
    first.insert(token("d", 100)).await.expect("stored");
    assert_eq!(second.find("b").await, Ok(Some(full.clone())));
    assert_eq!(second.find("B").await, Ok(None));
    let listed = second.list().await.expect("readable");
    assert_eq!(listed, [token("d", 100), full, token("c", 200)]);
}

/// The second token with an id is refused and changes nothing.
pub async fn an_id_is_stored_once(first: Arc<dyn Tokens>, second: Arc<dyn Tokens>) {
    first.insert(token("a", 1)).await.expect("stored");
    let twice = second.insert(token("a", 2)).await;
    assert_eq!(twice, Err(TokensError::Exists("a".into())));
    assert_eq!(first.find("a").await, Ok(Some(token("a", 1))));
}

/// A revoked token is revoked for everyone, at the time of the first revocation.
pub async fn a_revocation_counts_for_every_handle_and_keeps_its_first_time(
    first: Arc<dyn Tokens>,
    second: Arc<dyn Tokens>,
) {
    first.insert(token("a", 1)).await.expect("stored");
    assert_eq!(first.revoke("b", at(5)).await, Ok(None));
    let revoked = first.revoke("a", at(5)).await.expect("works").expect("known");
    assert_eq!(revoked.revoked_at, Some(at(5)));
    let again = second.revoke("a", at(9)).await.expect("works").expect("known");
    assert_eq!(again.revoked_at, Some(at(5)));
    assert_eq!(second.find("a").await, Ok(Some(again)));
}
