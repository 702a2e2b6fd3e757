use std::{sync::LazyLock, time::SystemTime};

use tool_core::{BoxFuture, KeptTexts, KeptTextsError};

use super::list_state::{KEPT_LISTS_REVISION, raise, raise_for_list};
use crate::{Database, SqlDialect, SqlError, SqlStore, SqlValue, codec};

/// Age at which a text is removed when another one of its name is saved: that of settings which nobody uses any more.
const MAX_AGE: i64 = 30 * 24 * 60 * 60 * 1000;

/// A server that is a row of the store shows its lists in this row as well, for people who query.
const SET_CACHE: &str = "UPDATE mcp_servers SET schema_cache = $2, schema_cached_at = $3 WHERE name = $1";
const CLEAR_CACHE: &str =
    "UPDATE mcp_servers SET schema_cache = NULL, schema_cached_at = NULL WHERE name = $1";
const CLEAR_CACHES: &str = "UPDATE mcp_servers SET schema_cache = NULL, schema_cached_at = NULL";

/// Number of texts that one query finds. All of them are one value of a result, which no database makes longer than 1 GB.
const N_WANTED: usize = 32;

/// Queries for the texts of [`N_WANTED`] keys, as one value: for each text its number, its length in bytes, and the text itself. A
/// row of the result costs more than a row of the table. SQLite copies a text to end it with a zero byte, and no bytes.
static WANTED_OF_SQLITE: LazyLock<String> = LazyLock::new(|| {
    let length = "length(CAST(kept.content AS BLOB))";
    query(&format!(
        "CAST(group_concat(wanted.at || ' ' || {length} || ' ' || kept.content, '') AS BLOB)"
    ))
});
static WANTED_OF_POSTGRES: LazyLock<String> = LazyLock::new(|| {
    let length = "octet_length(kept.content)";
    query(&format!(
        "string_agg(wanted.at || ' ' || {length} || ' ' || kept.content, '')"
    ))
});

fn query(texts: &str) -> String {
    let wanted = (0..N_WANTED).map(|at| format!("({at}, ${}, ${})", 2 * at + 1, 2 * at + 2));
    let wanted: Vec<_> = wanted.collect();
    format!(
        "WITH wanted (at, name, digest) AS (VALUES {}) SELECT {texts} FROM wanted \
         JOIN kept_lists kept ON kept.name = wanted.name AND kept.digest = wanted.digest",
        wanted.join(", ")
    )
}

/// Returns the parameters of the query. No text has the key that fills the rest.
fn parameters(keys: &[(String, String)]) -> Vec<SqlValue> {
    let known = keys.iter().flat_map(|(name, digest)| [&**name, &**digest]);
    let all = known.chain(std::iter::repeat(""));
    all.take(2 * N_WANTED).map(SqlValue::from).collect()
}

/// Splits the value of the query into the texts with their numbers.
fn split(mut found: &[u8]) -> Result<Vec<(usize, &str)>, SqlError> {
    let mut texts = Vec::new();
    while !found.is_empty() {
        let mut parts = found.splitn(3, |byte| *byte == b' ');
        let mut number = || str::from_utf8(parts.next()?).ok()?.parse::<usize>().ok();
        let text = number().zip(number()).and_then(|(at, length)| {
            let (text, rest) = parts.next()?.split_at_checked(length)?;
            Some((at, str::from_utf8(text).ok()?, rest))
        });
        let (at, text, rest) = text.ok_or_else(|| SqlError::Corrupt("a kept text is cut".to_owned()))?;
        texts.push((at, text));
        found = rest;
    }
    Ok(texts)
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
                let query = match self.database().dialect() {
                    SqlDialect::Sqlite => &WANTED_OF_SQLITE,
                    SqlDialect::Postgres => &WANTED_OF_POSTGRES,
                };
                let mut texts = vec![None; keys.len()];
                for (group, keys) in keys.chunks(N_WANTED).enumerate() {
                    let mut rows = transaction.fetch(query, parameters(keys)).await?;
                    let Some(row) = rows.first_mut().filter(|row| !row.is_null(0)) else {
                        continue;
                    };
                    for (at, text) in split(&row.bytes(0)?)? {
                        if let Some(place) = texts.get_mut(group * N_WANTED + at) {
                            *place = Some(text.to_owned());
                        }
                    }
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
                raise_for_list(&mut *transaction, (&name, &digest), &text).await?;
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
                raise(&mut *transaction, KEPT_LISTS_REVISION).await?;
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
