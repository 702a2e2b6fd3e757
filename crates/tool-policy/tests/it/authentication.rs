//! Static tokens around a clock that the test moves.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tool_core::{
    Authenticate, AuthenticationError, BoxFuture, Clock, Instant, TokenRecord, Tokens, TokensError,
};
use tool_policy::{
    MemoryTokens, NewToken, PrincipalSettings, Principals, SharedPrincipals, TokenAuthenticator,
};

/// Clock whose time of day the test sets.
struct MovedClock(Mutex<SystemTime>);

impl Clock for MovedClock {
    fn now(&self) -> Instant {
        Instant::default()
    }

    fn wall(&self) -> SystemTime {
        *self.0.lock().expect("no panic")
    }
}

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

#[tokio::test]
async fn a_token_is_valid_up_to_the_second_of_its_expiry() {
    let clock = Arc::new(MovedClock(Mutex::new(at(100))));
    let tokens = Arc::new(MemoryTokens::default());
    let principals = SharedPrincipals::new(Principals::default());
    let authenticator = TokenAuthenticator::new(tokens.clone(), principals, clock.clone());
    let mut token = NewToken::generate("ada", at(100)).expect("randomness");
    token.record.expires_at = Some(at(200));
    tokens.insert(token.record).await.expect("it is new");
    let header = format!("Bearer {}", token.text.expose());
    for (now, is_valid) in [
        (100, true),
        (199, true),
        (200, false),
        (5_000, false),
        (150, true),
    ] {
        *clock.0.lock().expect("no panic") = at(now);
        let caller = authenticator.authenticate(Some(&header)).await;
        match is_valid {
            true => assert_eq!(&*caller.expect("it is active").principal, "ada"),
            false => assert_eq!(caller, Err(AuthenticationError::Invalid("the token has expired"))),
        }
    }
}

#[tokio::test]
async fn replaced_principals_take_effect_with_the_next_request() {
    let clock = Arc::new(MovedClock(Mutex::new(at(100))));
    let tokens = Arc::new(MemoryTokens::default());
    let principals = SharedPrincipals::new(Principals::default());
    let authenticator = TokenAuthenticator::new(tokens.clone(), principals.clone(), clock);
    let mut token = NewToken::generate("ada", at(100)).expect("randomness");
    token.record.roles = vec!["writer".into()];
    tokens.insert(token.record).await.expect("it is new");
    let header = format!("Bearer {}", token.text.expose());
    let permissions = async || {
        let caller = authenticator
            .authenticate(Some(&header))
            .await
            .expect("it is active");
        caller
            .permissions
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(permissions().await, [""; 0]);
    let mut changed = Principals::default();
    changed
        .roles
        .insert("writer".to_owned(), vec!["files.write".to_owned()]);
    let mut ada = PrincipalSettings::default();
    ada.permissions = vec!["mail".to_owned()];
    changed.by_name.insert("ada".to_owned(), ada);
    principals.store(changed);
    assert_eq!(permissions().await, ["files.write", "mail"]);
}

/// Store that counts its reads, and does not work.
#[derive(Default)]
struct Broken(Mutex<usize>);

impl Tokens for Broken {
    fn insert(&self, _: TokenRecord) -> BoxFuture<'_, Result<(), TokensError>> {
        Box::pin(async { Err(TokensError::Unavailable("gone".to_owned())) })
    }

    fn find<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<TokenRecord>, TokensError>> {
        *self.0.lock().expect("no panic") += 1;
        Box::pin(async { Err(TokensError::Unavailable("gone".to_owned())) })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<TokenRecord>, TokensError>> {
        Box::pin(async { Err(TokensError::Unavailable("gone".to_owned())) })
    }

    fn revoke<'a>(
        &'a self,
        _: &'a str,
        _: SystemTime,
    ) -> BoxFuture<'a, Result<Option<TokenRecord>, TokensError>> {
        Box::pin(async { Err(TokensError::Unavailable("gone".to_owned())) })
    }
}

#[tokio::test]
async fn the_store_is_asked_about_possible_tokens_only_and_its_failure_lets_nobody_in() {
    let tokens = Arc::new(Broken::default());
    let clock = Arc::new(MovedClock(Mutex::new(at(100))));
    let principals = SharedPrincipals::new(Principals::default());
    let authenticator = TokenAuthenticator::new(tokens.clone(), principals, clock);
    let token = NewToken::generate("ada", at(100))
        .expect("randomness")
        .text
        .expose();
    let mistyped = format!("{}x", &token[..token.len() - 1]);
    for header in [String::new(), "Bearer".to_owned(), format!("Bearer {mistyped}")] {
        let refused = authenticator.authenticate(Some(&header)).await;
        assert!(
            !matches!(refused, Ok(_) | Err(AuthenticationError::Unavailable(_))),
            "{header}"
        );
    }
    assert_eq!(*tokens.0.lock().expect("no panic"), 0);
    let refused = authenticator.authenticate(Some(&format!("Bearer {token}"))).await;
    assert!(
        matches!(refused, Err(AuthenticationError::Unavailable(_))),
        "{refused:?}"
    );
    assert_eq!(*tokens.0.lock().expect("no panic"), 1);
}

#[tokio::test]
async fn a_store_in_memory_keeps_the_contract_of_the_port() {
    let tokens = MemoryTokens::default();
    let record = |id: &str, created: u64| TokenRecord::new(id, [0; 32], "ada", at(created));
    for (id, created) in [("b", 2), ("c", 1), ("a", 2)] {
        tokens.insert(record(id, created)).await.expect("it is new");
    }
    assert_eq!(
        tokens.insert(record("a", 9)).await,
        Err(TokensError::Exists("a".into()))
    );
    let listed = tokens.list().await.expect("it works");
    let ids: Vec<_> = listed.iter().map(|token| &*token.id).collect();
    assert_eq!(ids, ["c", "a", "b"]);
    for now in [5, 6] {
        let revoked = tokens
            .revoke("a", at(now))
            .await
            .expect("it works")
            .expect("it is known");
        assert_eq!(revoked.revoked_at, Some(at(5)));
    }
    assert_eq!(
        tokens
            .find("a")
            .await
            .expect("it works")
            .and_then(|token| token.revoked_at),
        Some(at(5))
    );
    assert_eq!(tokens.revoke("d", at(5)).await, Ok(None));
    assert_eq!(tokens.find("d").await, Ok(None));
}
