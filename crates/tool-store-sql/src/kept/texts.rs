use tool_core::{BoxFuture, KeptTexts, KeptTextsError};

use crate::{Database, SqlError, SqlStore, codec};

/// Age at which a text is removed when another one of its name is saved: that of settings which nobody uses any more.
const MAX_AGE: i64 = 30 * 24 * 60 * 60 * 1000;

impl<D: Database> KeptTexts for SqlStore<D> {
    fn load<'a>(
        &'a self,
        keys: &'a [(String, String)],
    ) -> BoxFuture<'a, Result<Vec<Option<String>>, KeptTextsError>> {
        Box::pin(async move {
            let loaded = async {
                let Some(mut transaction) = self.database().read().await? else {
                    return Ok(vec![None; keys.len()]);
                };
                let query = "SELECT content FROM kept_lists WHERE name = $1 AND digest = $2";
                let mut texts = Vec::with_capacity(keys.len());
                for (name, digest) in keys {
                    let parameters = vec![name.as_str().into(), digest.as_str().into()];
                    let mut rows = transaction.fetch(query, parameters).await?;
                    texts.push(rows.first_mut().map(|row| row.text(0)).transpose()?);
                }
                Ok(texts)
            };
            loaded.await.map_err(|error| self.not_kept(error))
        })
    }

    fn save(&self, key: (String, String), text: String) -> BoxFuture<'_, Result<(), KeptTextsError>> {
        Box::pin(async move {
            let saved = async {
                let (name, digest) = key;
                let now = codec::millis(self.clock().wall());
                let mut transaction = self.database().write().await?;
                let statement = "INSERT INTO kept_lists (name, digest, content, saved_at) VALUES ($1, $2, $3, $4) \
                                 ON CONFLICT (name, digest) DO UPDATE SET content = excluded.content, \
                                 saved_at = excluded.saved_at";
                let parameters = vec![name.as_str().into(), digest.into(), text.into(), now.into()];
                transaction.execute(statement, parameters).await?;
                let old = "DELETE FROM kept_lists WHERE name = $1 AND saved_at < $2";
                let oldest = now.saturating_sub(MAX_AGE);
                transaction.execute(old, vec![name.into(), oldest.into()]).await?;
                transaction.commit().await
            };
            saved.await.map_err(|error| self.not_kept(error))
        })
    }

    fn forget<'a>(&'a self, name: Option<&'a str>) -> BoxFuture<'a, Result<usize, KeptTextsError>> {
        Box::pin(async move {
            let forgotten = async {
                if self.database().read().await?.is_none() {
                    return Ok(0);
                }
                let mut transaction = self.database().write().await?;
                let n_forgotten = match name {
                    Some(name) => {
                        let statement = "DELETE FROM kept_lists WHERE name = $1";
                        transaction.execute(statement, vec![name.into()]).await?
                    }
                    None => transaction.execute("DELETE FROM kept_lists", Vec::new()).await?,
                };
                transaction.commit().await?;
                Ok(usize::try_from(n_forgotten).unwrap_or(usize::MAX))
            };
            forgotten.await.map_err(|error| self.not_kept(error))
        })
    }
}

impl<D: Database> SqlStore<D> {
    fn not_kept(&self, error: SqlError) -> KeptTextsError {
        KeptTextsError::new(error.of_store(self.database().name()).to_string())
    }
}
