//! Authentication of callers: static tokens, and the principals and roles that give permissions.

mod authenticator;
mod bearer;
mod memory_tokens;
mod principals;
mod token_text;

pub use self::{
    authenticator::TokenAuthenticator,
    memory_tokens::MemoryTokens,
    principals::{PrincipalSettings, Principals, SharedPrincipals, TenantMismatch},
    token_text::{NewToken, ParseTokenError, TokenText},
};
