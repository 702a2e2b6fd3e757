use std::{sync::Arc, time::SystemTime};

use parking_lot::Mutex;
use tool_core::{BoxFuture, TokenRecord, Tokens, TokensError};

/// Store of tokens in memory, which end with the process.
///
/// # Examples
/// ```
/// use std::time::SystemTime;
///
/// use tool_core::Tokens;
/// use tool_policy::{MemoryTokens, NewToken};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let tokens = MemoryTokens::default();
/// let token = NewToken::generate("ada", SystemTime::now())?;
/// let id = token.record.id.clone();
/// tokens.insert(token.record).await?;
/// assert!(tokens.find(&id).await?.is_some());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct MemoryTokens(Mutex<Vec<TokenRecord>>);

impl MemoryTokens {
    fn insert_now(&self, token: TokenRecord) -> Result<(), TokensError> {
        let mut records = self.0.lock();
        if records.iter().any(|known| known.id == token.id) {
            return Err(TokensError::Exists(token.id));
        }
        records.push(token);
        records.sort_by_key(|token| (token.created_at, Arc::clone(&token.id)));
        Ok(())
    }

    fn revoke_now(&self, id: &str, at: SystemTime) -> Option<TokenRecord> {
        let mut records = self.0.lock();
        let token = records.iter_mut().find(|known| *known.id == *id)?;
        token.revoked_at.get_or_insert(at);
        Some(token.clone())
    }
}

impl Tokens for MemoryTokens {
    fn insert(&self, token: TokenRecord) -> BoxFuture<'_, Result<(), TokensError>> {
        Box::pin(async move { self.insert_now(token) })
    }

    fn find<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<TokenRecord>, TokensError>> {
        Box::pin(async move { Ok(self.0.lock().iter().find(|known| *known.id == *id).cloned()) })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<TokenRecord>, TokensError>> {
        Box::pin(async move { Ok(self.0.lock().clone()) })
    }

    fn revoke<'a>(
        &'a self,
        id: &'a str,
        at: SystemTime,
    ) -> BoxFuture<'a, Result<Option<TokenRecord>, TokensError>> {
        Box::pin(async move { Ok(self.revoke_now(id, at)) })
    }
}
