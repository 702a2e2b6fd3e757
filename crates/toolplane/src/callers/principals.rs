//! Principals, roles and tokens that do not fit together.

use std::{collections::BTreeSet, fmt, sync::Arc, time::SystemTime};

use tool_core::{TokenRecord, TokenState, TokensError};
use tool_settings::suggest;

use crate::{IdleRule, Toolplane, callers::authentication::Method};

/// Role that a token has and that the configuration does not define. It gives no permission.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UndefinedRole {
    /// Id of the token.
    pub token: Arc<str>,
    /// Principal of the token.
    pub principal: Arc<str>,
    /// Name of the role.
    pub role: Arc<str>,
    /// Defined role that was probably meant.
    pub suggestion: Option<String>,
}

impl fmt::Display for UndefinedRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            token,
            principal,
            role,
            ..
        } = self;
        write!(
            f,
            "the token `{token}` of `{principal}` has the role `{role}`, which is not defined"
        )
    }
}

impl Toolplane {
    /// Returns the entries of `policy.permissions` and `policy.principals` that have no effect, since no client can
    /// authenticate as that principal: because it has no active token, or because nothing authenticates clients. With an
    /// [authenticator](crate::Builder::authenticator) of the host program, principals are unknown and none is returned.
    ///
    /// # Errors
    /// If the store of tokens cannot be read.
    ///
    /// # Cancellation
    /// Dropping the future has no effect.
    pub async fn idle_principals(&self) -> Result<Vec<IdleRule>, TokensError> {
        let mut known: BTreeSet<Arc<str>> = BTreeSet::from(["local".into()]);
        match self.0.authentication.method() {
            Method::None => {
                known.insert("anonymous".into());
            }
            Method::Tokens(tokens) => {
                let active = active(tokens.list().await?, self.0.clock.wall());
                known.extend(active.map(|token| token.principal));
            }
            Method::Unknown => return Ok(Vec::new()),
        }
        let names: Vec<&str> = known.iter().map(|name| &**name).collect();
        let callers = self.0.callers.load();
        let idle = callers
            .named
            .iter()
            .filter(|(_, name)| !known.contains(name.as_str()));
        let idle = idle.map(|(setting, name)| IdleRule {
            server: None,
            setting,
            pattern: name.clone(),
            suggestion: suggest::nearest(name, &names).map(str::to_owned),
        });
        Ok(idle.collect())
    }

    /// Returns the roles that active tokens have and that `policy.roles` does not define. With an
    /// [authenticator](crate::Builder::authenticator) of the host program none is returned.
    ///
    /// # Errors
    /// If the store of tokens cannot be read.
    ///
    /// # Cancellation
    /// Dropping the future has no effect.
    pub async fn undefined_roles(&self) -> Result<Vec<UndefinedRole>, TokensError> {
        let Method::Tokens(tokens) = self.0.authentication.method() else {
            return Ok(Vec::new());
        };
        let principals = self.0.principals.load();
        let known: Vec<&str> = principals.roles.keys().map(String::as_str).collect();
        let active = active(tokens.list().await?, self.0.clock.wall());
        let roles = active.flat_map(|token| {
            let (id, principal) = (token.id, token.principal);
            let roles = token.roles.into_iter();
            roles.map(move |role| (id.clone(), principal.clone(), role))
        });
        let undefined = roles.filter(|(_, _, role)| !principals.roles.contains_key(&**role));
        let undefined = undefined.map(|(token, principal, role)| UndefinedRole {
            suggestion: suggest::nearest(&role, &known).map(str::to_owned),
            token,
            principal,
            role,
        });
        Ok(undefined.collect())
    }
}

fn active(tokens: Vec<TokenRecord>, now: SystemTime) -> impl Iterator<Item = TokenRecord> {
    let is_active = move |token: &TokenRecord| token.state(now) == TokenState::Active;
    tokens.into_iter().filter(is_active)
}
