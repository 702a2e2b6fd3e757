//! Callers that a toolplane authenticates.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use toolplane::{
    Toolplane,
    core::{Authenticate, AuthenticationError, BoxFuture, Caller, TokenRecord, Tokens},
    policy::{MemoryTokens, NewToken},
};

async fn token(tokens: &MemoryTokens, principal: &str, change: impl FnOnce(&mut TokenRecord)) -> String {
    let mut token = NewToken::generate(principal, SystemTime::now()).expect("randomness");
    change(&mut token.record);
    tokens.insert(token.record).await.expect("it is new");
    format!("Bearer {}", token.text.expose())
}

#[tokio::test]
async fn without_authentication_every_caller_is_anonymous() {
    let plane = Toolplane::from_yaml("policy: {principals: {anonymous: {permissions: [look]}}}")
        .expect("it is valid");
    assert!(!plane.requires_authentication());
    for header in [None, Some("Bearer x"), Some("Basic x")] {
        let caller = plane.authenticate(header).await.expect("everybody is let in");
        assert_eq!(&*caller.principal, "anonymous");
        assert!(caller.permissions.contains("look"));
    }
    // Principals that a host program has authenticated have the permissions of the configuration as well.
    assert!(plane.caller("anonymous").permissions.contains("look"));
    assert!(plane.caller("ada").permissions.is_empty());
}

/// Authenticator of a host program.
struct Everybody;

impl Authenticate for Everybody {
    fn authenticate<'a>(
        &'a self,
        authorization: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Arc<Caller>, AuthenticationError>> {
        Box::pin(async move {
            let name = authorization.ok_or(AuthenticationError::Missing)?;
            Ok(Arc::new(Caller::new(name)))
        })
    }
}

#[tokio::test]
async fn an_authenticator_of_the_host_program_replaces_the_configured_one() {
    for auth in ["none", "tokens"] {
        let plane = Toolplane::builder()
            .yaml(format!(
                "{{gateway: {{auth: {auth}}}, policy: {{permissions: {{ada: [x]}}}}}}"
            ))
            .expect("it is valid")
            .authenticator(Arc::new(Everybody))
            .build()
            .expect("it can be set up");
        assert!(plane.requires_authentication());
        let caller = plane.authenticate(Some("ada")).await.expect("it is let in");
        assert_eq!(&*caller.principal, "ada");
        assert_eq!(plane.authenticate(None).await, Err(AuthenticationError::Missing));
        assert!(
            plane
                .idle_principals()
                .await
                .expect("no store is asked")
                .is_empty()
        );
    }
}

#[tokio::test]
async fn principals_without_an_active_token_and_undefined_roles_are_found() {
    let tokens = Arc::new(MemoryTokens::default());
    let plane = Toolplane::builder()
        .yaml(
            "{gateway: {auth: tokens}, policy: {roles: {reader: []}, permissions: {local: [x], anonymous: [x], eve: []}, \
             principals: {ada: {}, bob: {}, carl: {}}}}",
        )
        .expect("it is valid")
        .tokens(tokens.clone())
        .build()
        .expect("it can be set up");
    let long_ago = SystemTime::now() - Duration::from_secs(3_600);
    token(&tokens, "ada", |token| {
        token.roles = vec!["reader".into(), "raeder".into()];
    })
    .await;
    token(&tokens, "bob", |token| token.revoked_at = Some(long_ago)).await;
    token(&tokens, "carl", |token| {
        token.expires_at = Some(long_ago);
        token.roles = vec!["gone".into()];
    })
    .await;
    let idle = plane.idle_principals().await.expect("it works");
    let idle: Vec<_> = idle.iter().map(|rule| (rule.setting, &*rule.pattern)).collect();
    assert_eq!(
        idle,
        [
            ("permissions", "anonymous"),
            ("permissions", "eve"),
            ("principals", "bob"),
            ("principals", "carl")
        ]
    );
    let undefined = plane.undefined_roles().await.expect("it works");
    assert_eq!(undefined.len(), 1, "{undefined:?}");
    assert_eq!((&*undefined[0].principal, &*undefined[0].role), ("ada", "raeder"));
    assert_eq!(undefined[0].suggestion.as_deref(), Some("reader"));
}

#[tokio::test]
async fn a_configuration_without_a_store_refuses_everybody() {
    let plane = Toolplane::from_yaml("gateway: {auth: tokens}").expect("it is valid");
    assert!(plane.requires_authentication());
    for header in [None, Some("Bearer x")] {
        let refused = plane.authenticate(header).await;
        assert!(
            matches!(refused, Err(AuthenticationError::Unavailable(_))),
            "{refused:?}"
        );
    }
}
