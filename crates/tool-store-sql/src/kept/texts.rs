use std::{collections::HashMap, sync::LazyLock, time::SystemTime};

use tool_core::{BoxFuture, KeptTexts, KeptTextsError};

use crate::{Database, SqlError, SqlStore, SqlValue, codec};

/// Age at which a text is removed when another one of its name is saved: that of settings which nobody uses any more.
const MAX_AGE: i64 = 30 * 24 * 60 * 60 * 1000;

/// A server that is a row of the store shows its lists in this row as well, for people who query.
const SET_CACHE: &str = "UPDATE mcp_servers SET schema_cache = $2, schema_cached_at = $3 WHERE name = $1";
const CLEAR_CACHE: &str =
    "UPDATE mcp_servers SET schema_cache = NULL, schema_cached_at = NULL WHERE name = $1";
const CLEAR_CACHES: &str = "UPDATE mcp_servers SET schema_cache = NULL, schema_cached_at = NULL";

/// Number of texts that one query finds.
const N_WANTED: usize = 64;

/// Query for the texts of [`N_WANTED`] keys.
static WANTED: LazyLock<String> = LazyLock::new(|| {
    let pairs = (0..N_WANTED).map(|at| format!("(${}, ${})", 2 * at + 1, 2 * at + 2));
    let pairs: Vec<_> = pairs.collect();
    format!(
        "WITH wanted (name, digest) AS (VALUES {}) SELECT kept.name, kept.digest, kept.content FROM wanted \
         JOIN kept_lists kept ON kept.name = wanted.name AND kept.digest = wanted.digest",
        pairs.join(", ")
    )
});

/// Returns the parameters of [`WANTED`]. No text has the key that fills the rest.
fn wanted(keys: &[(String, String)]) -> Vec<SqlValue> {
    let known = keys.iter().flat_map(|(name, digest)| [&**name, &**digest]);
    let all = known.chain(std::iter::repeat(""));
    all.take(2 * N_WANTED).map(SqlValue::from).collect()
}

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
                let mut found = HashMap::with_capacity(keys.len());
                for keys in keys.chunks(N_WANTED) {
                    for mut row in transaction.fetch(&WANTED, wanted(keys)).await? {
                        found.insert((row.text(0)?, row.text(1)?), row.text(2)?);
                    }
                }
                // A key may be wanted twice.
                let texts = keys.iter().map(|key| found.get(key).cloned());
                Ok(texts.collect())
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
                let parameters = vec![
                    name.as_str().into(),
                    digest.into(),
                    text.as_str().into(),
                    now.into(),
                ];
                transaction.execute(statement, parameters).await?;
                transaction
                    .execute(SET_CACHE, vec![name.as_str().into(), text.into(), now.into()])
                    .await?;
                let old = "DELETE FROM kept_lists WHERE name = $1 AND saved_at < $2";
                let oldest = now.saturating_sub(MAX_AGE);
                transaction.execute(old, vec![name.into(), oldest.into()]).await?;
                transaction.commit().await
            };
            saved.await.map_err(|error| self.not_kept(error))
        })
    }

    fn kept_at(&self) -> BoxFuture<'_, Result<Vec<(String, SystemTime)>, KeptTextsError>> {
        Box::pin(async move {
            let found = async {
                let Some(mut transaction) = self.database().read().await? else {
                    return Ok(Vec::new());
                };
                let query = "SELECT name, MAX(saved_at) FROM kept_lists GROUP BY name ORDER BY name";
                let rows = transaction.fetch(query, Vec::new()).await?.into_iter();
                rows.map(|mut row| Ok((row.text(0)?, codec::time(row.int(1)?))))
                    .collect()
            };
            found.await.map_err(|error| self.not_kept(error))
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
                        transaction.execute(CLEAR_CACHE, vec![name.into()]).await?;
                        let statement = "DELETE FROM kept_lists WHERE name = $1";
                        transaction.execute(statement, vec![name.into()]).await?
                    }
                    None => {
                        transaction.execute(CLEAR_CACHES, Vec::new()).await?;
                        transaction.execute("DELETE FROM kept_lists", Vec::new()).await?
                    }
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
