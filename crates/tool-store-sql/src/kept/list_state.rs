use tool_registry::StoreError;

use crate::{Database, SqlError, SqlStore, SqlTransaction, SqlValue};

/// Counters in `store_meta` that grow with each change of the pins, and of the kept lists.
pub(super) const PINS_REVISION: &str = "pins_revision";
pub(super) const KEPT_LISTS_REVISION: &str = "kept_lists_revision";

/// All counters, and the time at which the tables were made, which tells two databases apart.
const STATE: &str = "SELECT name, number FROM store_meta WHERE number IS NOT NULL \
                     UNION ALL SELECT 'made', MIN(applied_at) FROM schema_migrations \
                     UNION ALL SELECT 'tables', MAX(version) FROM schema_migrations ORDER BY 1";

/// Raises a counter. To be done first in a transaction: the row of the counter orders the writers.
pub(super) async fn raise(transaction: &mut dyn SqlTransaction, counter: &str) -> Result<(), SqlError> {
    let statement = "UPDATE store_meta SET number = number + 1 WHERE name = $1";
    transaction.execute(statement, vec![counter.into()]).await?;
    Ok(())
}

/// Raises the counter of the kept lists, unless the list of this key has this content already. As [`raise`].
pub(super) async fn raise_for_list(
    transaction: &mut dyn SqlTransaction,
    (name, digest): (&str, &str),
    content: &str,
) -> Result<(), SqlError> {
    let statement = "UPDATE store_meta SET number = number + 1 WHERE name = $1 AND NOT EXISTS \
                     (SELECT 1 FROM kept_lists WHERE name = $2 AND digest = $3 AND content = $4)";
    let parameters: Vec<SqlValue> = vec![
        KEPT_LISTS_REVISION.into(),
        name.into(),
        digest.into(),
        content.into(),
    ];
    transaction.execute(statement, parameters).await?;
    Ok(())
}

impl<D: Database> SqlStore<D> {
    /// Returns a text that is another one whenever something has changed that lists of tools are made of: tools, their aliases and
    /// grants, servers, pins or kept lists. `None` if there is no database.
    ///
    /// # Cancellation
    /// Dropping the future changes nothing.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub async fn list_state(&self) -> Result<Option<String>, StoreError> {
        let read = async {
            let Some(mut transaction) = self.database().read().await? else {
                return Ok(None);
            };
            let mut state = String::new();
            for mut row in transaction.fetch(STATE, Vec::new()).await? {
                state.push_str(&format!("{}={};", row.text(0)?, row.int(1)?));
            }
            Ok(Some(state))
        };
        read.await
            .map_err(|error: SqlError| error.of_store(self.database().name()))
    }
}
