use std::{fmt, sync::Arc};

use tool_core::{
    Authenticate, AuthenticationError, BoxFuture, Caller, Clock, TokenRecord, TokenState, Tokens,
};

use super::{SharedPrincipals, TokenText, bearer::bearer_token};

/// Authenticator by static tokens: finds the record of a bearer token and compares its secret.
///
/// Every request reads the store. A revoked or expired token is therefore refused from the next request on, and a
/// changed configuration gives other permissions from then on.
///
/// # Examples
/// ```
/// use std::{sync::Arc, time::SystemTime};
///
/// use tool_core::{Authenticate, AuthenticationError, SystemClock, Tokens};
/// use tool_policy::{MemoryTokens, NewToken, Principals, SharedPrincipals, TokenAuthenticator};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let tokens = Arc::new(MemoryTokens::default());
/// let principals = SharedPrincipals::new(Principals::default());
/// let authenticator = TokenAuthenticator::new(tokens.clone(), principals, Arc::new(SystemClock::new()));
///
/// let token = NewToken::generate("ada", SystemTime::now())?;
/// tokens.insert(token.record).await?;
/// let header = format!("Bearer {}", token.text.expose());
/// let caller = authenticator.authenticate(Some(&header)).await?;
/// assert_eq!(&*caller.principal, "ada");
/// assert_eq!(authenticator.authenticate(None).await, Err(AuthenticationError::Missing));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct TokenAuthenticator {
    tokens: Arc<dyn Tokens>,
    principals: SharedPrincipals,
    clock: Arc<dyn Clock>,
}

/// Message about a token that does not exist, or whose secret is wrong. Both are the same to a client.
const UNKNOWN: &str = "the token is unknown";

impl TokenAuthenticator {
    /// Creates an authenticator by the tokens of this store.
    #[must_use]
    pub fn new(tokens: Arc<dyn Tokens>, principals: SharedPrincipals, clock: Arc<dyn Clock>) -> Self {
        Self {
            tokens,
            principals,
            clock,
        }
    }

    async fn caller(&self, authorization: Option<&str>) -> Result<Arc<Caller>, AuthenticationError> {
        let token = bearer_token(authorization)?;
        let Ok(token) = token.parse::<TokenText>() else {
            return Err(AuthenticationError::Invalid(UNKNOWN));
        };
        let record = self.tokens.find(token.id()).await;
        let record = record.map_err(|error| AuthenticationError::Unavailable(error.to_string()))?;
        let record = self.verify(&token, record)?;
        let principals = self.principals.load();
        let tenant = record.tenant.as_deref();
        match principals.caller(&record.principal, tenant, &record.roles) {
            Ok(caller) => Ok(Arc::new(caller)),
            Err(_) => Err(AuthenticationError::Invalid(
                "the principal of the token belongs to another tenant",
            )),
        }
    }

    /// Checks the secret first, so that only its owner learns about the state of a token.
    fn verify(
        &self,
        token: &TokenText,
        record: Option<TokenRecord>,
    ) -> Result<TokenRecord, AuthenticationError> {
        // Without a record, the comparison is made all the same: the time tells nothing about ids.
        let digest = record.as_ref().map_or([0; 32], |record| record.secret_digest);
        let is_equal = token.has_digest(&digest);
        let Some(record) = record.filter(|_| is_equal) else {
            return Err(AuthenticationError::Invalid(UNKNOWN));
        };
        match record.state(self.clock.wall()) {
            TokenState::Active if is_reserved(&record.principal) => {
                // Nobody may act as a principal that needs no credentials.
                Err(AuthenticationError::Invalid(
                    "the principal of the token is reserved for clients without one",
                ))
            }
            TokenState::Active => Ok(record),
            TokenState::Expired => Err(AuthenticationError::Invalid("the token has expired")),
            TokenState::Revoked => Err(AuthenticationError::Invalid("the token was revoked")),
            // A state of a later version is not one in which a token is valid.
            _ => Err(AuthenticationError::Invalid("the token is not active")),
        }
    }
}

fn is_reserved(principal: &str) -> bool {
    Caller::WITHOUT_AUTHENTICATION.contains(&principal)
}

impl Authenticate for TokenAuthenticator {
    fn authenticate<'a>(
        &'a self,
        authorization: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Arc<Caller>, AuthenticationError>> {
        Box::pin(self.caller(authorization))
    }
}

impl fmt::Debug for TokenAuthenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenAuthenticator")
            .field("principals", &self.principals)
            .finish_non_exhaustive()
    }
}
