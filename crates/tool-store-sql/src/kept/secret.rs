use tool_registry::StoreError;

use crate::{Database, SqlError, SqlStore};

impl<D: Database> SqlStore<D> {
    /// Returns the random secret of this name, which all gateways on the database share. The first one who asks creates it,
    /// for all.
    ///
    /// # Cancellation
    /// If the future is dropped, the secret may have been created. The next call returns it.
    ///
    /// # Errors
    /// If the database does not work, or the system has no randomness to give.
    pub async fn secret(&self, name: &str) -> Result<[u8; 32], StoreError> {
        let secret = self.find_or_create_secret(&format!("secret {name}")).await;
        secret.map_err(|error| error.of_store(self.database().name()))
    }

    async fn find_or_create_secret(&self, name: &str) -> Result<[u8; 32], SqlError> {
        let query = "SELECT content FROM store_meta WHERE name = $1";
        if let Some(mut transaction) = self.database().read().await?
            && let Some(row) = transaction.fetch(query, vec![name.into()]).await?.first_mut()
        {
            return secret_of(row.blob(0)?);
        }
        let mut random = [0; 32];
        getrandom::fill(&mut random)
            .map_err(|error| SqlError::failed("the system has no randomness to give").with_source(error))?;
        let mut transaction = self.database().write().await?;
        // Of two gateways that create it at once, one does, and both read the same.
        let statement =
            "INSERT INTO store_meta (name, content) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
        transaction
            .execute(statement, vec![name.into(), random.to_vec().into()])
            .await?;
        let mut rows = transaction.fetch(query, vec![name.into()]).await?;
        let created = rows.first_mut().map(|row| row.blob(0)).transpose()?;
        transaction.commit().await?;
        secret_of(created.unwrap_or_default())
    }
}

fn secret_of(bytes: Vec<u8>) -> Result<[u8; 32], SqlError> {
    let invalid =
        |bytes: Vec<u8>| SqlError::Corrupt(format!("a secret has {} bytes instead of 32", bytes.len()));
    bytes.try_into().map_err(invalid)
}
