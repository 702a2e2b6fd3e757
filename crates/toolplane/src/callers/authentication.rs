//! Authentication of the callers of surfaces.

use std::sync::Arc;

use tool_core::{Authenticate, AuthenticationError, BoxFuture, Caller, Clock, Tokens};
use tool_manifest::{AuthenticationSpec, Configuration};
use tool_policy::{SharedPrincipals, TokenAuthenticator};

use crate::Toolplane;

/// Authenticator and storage of tokens that the host program brings.
type OwnAuthentication = (Option<Arc<dyn Authenticate>>, Option<Arc<dyn Tokens>>);

/// Authentication that a builder or its configuration asks for.
pub(crate) struct Authentication {
    /// `None` if callers are not authenticated.
    authenticator: Option<Arc<dyn Authenticate>>,
    /// Store of the tokens that authenticate callers.
    tokens: Option<Arc<dyn Tokens>>,
}

/// Method of authentication.
pub(crate) enum Method<'a> {
    /// Callers are not authenticated.
    None,
    /// By the tokens of this store.
    Tokens(&'a dyn Tokens),
    /// By the host program, or not at all for want of a store.
    Unknown,
}

impl Authentication {
    /// Selects the authenticator: that of the host program, or else the one that the configuration names.
    pub(crate) fn new(
        configuration: &Configuration,
        (own, tokens): OwnAuthentication,
        principals: &SharedPrincipals,
        clock: &Arc<dyn Clock>,
    ) -> Self {
        if own.is_some() || configuration.gateway.auth == AuthenticationSpec::None {
            return Self {
                authenticator: own,
                tokens: None,
            };
        }
        let authenticator: Arc<dyn Authenticate> = match (configuration.gateway.auth, &tokens) {
            (AuthenticationSpec::Tokens, Some(tokens)) => Arc::new(TokenAuthenticator::new(
                tokens.clone(),
                principals.clone(),
                clock.clone(),
            )),
            // The store is missing, or the method is one of a later version: nobody gets in.
            _ => Arc::new(NoStore),
        };
        Self {
            authenticator: Some(authenticator),
            tokens,
        }
    }

    pub(crate) fn method(&self) -> Method<'_> {
        match (&self.authenticator, &self.tokens) {
            (None, _) => Method::None,
            (Some(_), Some(tokens)) => Method::Tokens(&**tokens),
            (Some(_), None) => Method::Unknown,
        }
    }
}

/// Authenticator that refuses everybody, since there is no store of tokens.
struct NoStore;

impl Authenticate for NoStore {
    fn authenticate<'a>(
        &'a self,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Arc<Caller>, AuthenticationError>> {
        let reason = "no store of tokens is set; set one with `Builder::tokens`";
        Box::pin(async move { Err(AuthenticationError::Unavailable(reason.to_owned())) })
    }
}

impl Toolplane {
    /// Returns `true` if surfaces must authenticate their callers: if the configuration says so in `gateway.auth`, or the
    /// host program has set an [authenticator](crate::Builder::authenticator). A reload does not change it.
    #[must_use]
    pub fn requires_authentication(&self) -> bool {
        self.0.authentication.authenticator.is_some()
    }

    /// Returns the caller that the value of the header `Authorization` authenticates; `None` if a request has no such
    /// header. Without authentication it is the [anonymous caller](Self::anonymous_caller), whatever the header.
    ///
    /// Nothing is remembered: each request reads the store of tokens and the current configuration.
    ///
    /// # Errors
    /// If the credentials are missing, malformed or not valid, or the store of tokens cannot be read. The request must
    /// be refused in each of these cases.
    ///
    /// # Cancellation
    /// Dropping the future has no effect.
    ///
    /// # Examples
    /// ```
    /// use std::{sync::Arc, time::SystemTime};
    ///
    /// use toolplane::{Toolplane, core::Tokens, policy::{MemoryTokens, NewToken}};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let tokens = Arc::new(MemoryTokens::default());
    /// let plane = Toolplane::builder()
    ///     .yaml("{gateway: {auth: tokens}, policy: {principals: {ada: {permissions: [files.read]}}}}")?
    ///     .tokens(tokens.clone())
    ///     .build()?;
    /// let token = NewToken::generate("ada", SystemTime::now())?;
    /// tokens.insert(token.record).await?;
    /// let caller = plane.authenticate(Some(&format!("Bearer {}", token.text.expose()))).await?;
    /// assert!(caller.permissions.contains("files.read"));
    /// assert!(plane.authenticate(None).await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn authenticate(
        &self,
        authorization: Option<&str>,
    ) -> Result<Arc<Caller>, AuthenticationError> {
        match &self.0.authentication.authenticator {
            Some(authenticator) => authenticator.authenticate(authorization).await,
            None => Ok(self.anonymous_caller()),
        }
    }

    /// Returns the caller of a principal that the host program has authenticated itself, with the permissions that the
    /// configuration grants it.
    #[must_use]
    pub fn caller(&self, principal: &str) -> Arc<Caller> {
        match principal {
            "local" => self.local_caller(),
            "anonymous" => self.anonymous_caller(),
            other => Arc::new(crate::build::policies::caller(&self.0.principals.load(), other)),
        }
    }
}
