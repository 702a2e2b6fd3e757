//! Tokens.

use std::{sync::Arc, time::SystemTime};

use serde_json::Value;
use tool_core::{BoxFuture, TokenRecord, Tokens, TokensError};

use crate::{Database, SqlError, SqlRow, SqlStore, codec};

const COLUMNS: &str = "SELECT id, secret_digest, principal, tenant, roles, label, created_at, expires_at, revoked_at \
                       FROM tokens ORDER BY created_at, id";
const BY_ID: &str = "SELECT id, secret_digest, principal, tenant, roles, label, created_at, expires_at, revoked_at \
                     FROM tokens WHERE id = $1";

impl<D: Database> Tokens for SqlStore<D> {
    fn insert(&self, token: TokenRecord) -> BoxFuture<'_, Result<(), TokensError>> {
        Box::pin(async move {
            let roles: Vec<&str> = token.roles.iter().map(|role| &**role).collect();
            let parameters = vec![
                (&*token.id).into(),
                raw_json::hex(&token.secret_digest).into(),
                (&*token.principal).into(),
                token.tenant.as_deref().into(),
                Value::from(roles).to_string().into(),
                token.label.clone().into(),
                codec::millis(token.created_at).into(),
                token.expires_at.map(codec::millis).into(),
                token.revoked_at.map(codec::millis).into(),
            ];
            let statement = "INSERT INTO tokens (id, secret_digest, principal, tenant, roles, label, created_at, \
                             expires_at, revoked_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
            let inserted = async {
                let mut transaction = self.database().write().await?;
                transaction.execute(statement, parameters).await?;
                transaction.commit().await
            };
            inserted.await.map_err(|error| match error {
                SqlError::Exists => TokensError::Exists(token.id.clone()),
                error => unavailable(self, error),
            })
        })
    }

    fn find<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<TokenRecord>, TokensError>> {
        Box::pin(async move {
            let found = async {
                let Some(mut transaction) = self.database().read().await? else {
                    return Ok(None);
                };
                let mut rows = transaction.fetch(BY_ID, vec![id.into()]).await?;
                rows.first_mut().map(token).transpose()
            };
            found.await.map_err(|error| unavailable(self, error))
        })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<TokenRecord>, TokensError>> {
        Box::pin(async move {
            let listed = async {
                let Some(mut transaction) = self.database().read().await? else {
                    return Ok(Vec::new());
                };
                let mut rows = transaction.fetch(COLUMNS, Vec::new()).await?;
                rows.iter_mut().map(token).collect()
            };
            listed.await.map_err(|error| unavailable(self, error))
        })
    }

    fn revoke<'a>(
        &'a self,
        id: &'a str,
        at: SystemTime,
    ) -> BoxFuture<'a, Result<Option<TokenRecord>, TokensError>> {
        Box::pin(async move {
            let revoked = async {
                let mut transaction = self.database().write().await?;
                let statement = "UPDATE tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL";
                transaction
                    .execute(statement, vec![id.into(), codec::millis(at).into()])
                    .await?;
                let mut rows = transaction.fetch(BY_ID, vec![id.into()]).await?;
                let record = rows.first_mut().map(token).transpose()?;
                transaction.commit().await?;
                Ok(record)
            };
            revoked.await.map_err(|error| unavailable(self, error))
        })
    }
}

fn unavailable<D: Database>(store: &SqlStore<D>, error: SqlError) -> TokensError {
    TokensError::Unavailable(error.of_store(store.database().name()).to_string())
}

fn token(row: &mut SqlRow) -> Result<TokenRecord, SqlError> {
    let secret_digest = codec::digest(&row.text(1)?)?;
    let mut record = TokenRecord::new(
        row.text(0)?,
        secret_digest,
        row.text(2)?,
        codec::time(row.int(6)?),
    );
    record.tenant = row.optional_text(3)?.map(Into::into);
    let roles: Vec<String> = serde_json::from_str(&row.text(4)?)
        .map_err(|error| SqlError::Corrupt(format!("the roles of a token are no list: {error}")))?;
    record.roles = roles.into_iter().map(Arc::from).collect();
    record.label = row.optional_text(5)?;
    record.expires_at = row.optional_int(7)?.map(codec::time);
    record.revoked_at = row.optional_int(8)?.map(codec::time);
    Ok(record)
}
