//! Ports of a store in SQL.

use std::sync::Arc;

use toolplane::{
    Pins, PinsError,
    core::{BoxFuture, Clock},
    registry::StoreError,
    search::{UsageLog, UsageRecord},
    store_sqlite::{Database, SqlLedger, SqlPins, SqlStore, SqlUsage},
};

use super::OpenStore;

/// Name of the secret that seals the states which clients give back.
const STATE_KEY: &str = "request_state";

/// Ports that are read as a whole before their first use.
pub(super) trait SharedPorts: Send + Sync {
    fn pins(&self) -> BoxFuture<'_, Result<Arc<dyn Pins>, PinsError>>;

    /// Pins without their definitions, which block the thread of whoever needs one.
    fn pins_by_digest(&self) -> BoxFuture<'_, Result<Arc<dyn Pins>, PinsError>>;

    fn usage(&self) -> BoxFuture<'_, Result<Arc<dyn UsageLog>, StoreError>>;

    fn state_key(&self) -> BoxFuture<'_, Result<[u8; 32], StoreError>>;

    /// Text that changes with everything that lists of tools are made of: see [`SqlStore::list_state`].
    fn list_state(&self) -> BoxFuture<'_, Result<Option<String>, StoreError>>;
}

struct SqlPorts<D>(Arc<SqlStore<D>>);

impl<D: Database> SharedPorts for SqlPorts<D> {
    fn pins(&self) -> BoxFuture<'_, Result<Arc<dyn Pins>, PinsError>> {
        Box::pin(async { Ok(Arc::new(SqlPins::load(self.0.clone()).await?) as _) })
    }

    fn pins_by_digest(&self) -> BoxFuture<'_, Result<Arc<dyn Pins>, PinsError>> {
        Box::pin(async { Ok(Arc::new(SqlPins::load_digests(self.0.clone()).await?) as _) })
    }

    fn usage(&self) -> BoxFuture<'_, Result<Arc<dyn UsageLog>, StoreError>> {
        Box::pin(async { Ok(Arc::new(StoredUsage(SqlUsage::load(self.0.clone()).await?)) as _) })
    }

    fn state_key(&self) -> BoxFuture<'_, Result<[u8; 32], StoreError>> {
        Box::pin(self.0.secret(STATE_KEY))
    }

    fn list_state(&self) -> BoxFuture<'_, Result<Option<String>, StoreError>> {
        Box::pin(self.0.list_state())
    }
}

/// Uses of tools in a store, as a search reads them.
struct StoredUsage<D>(SqlUsage<D>);

impl<D: Database> UsageLog for StoredUsage<D> {
    fn record(&self, tenant: &str, tool: &str, query: &str) {
        self.0.record(tenant, tool, query);
    }

    fn records(&self, tenant: &str) -> Vec<UsageRecord> {
        let records = self.0.records(tenant).into_iter();
        records
            .map(|(tool, query, n_calls)| UsageRecord::new(tool, query, n_calls))
            .collect()
    }

    fn revision(&self, tenant: &str) -> u64 {
        self.0.revision(tenant)
    }
}

/// Returns the ports of a store.
pub(super) fn ports<D: Database>(
    store: Arc<SqlStore<D>>,
    clock: Arc<dyn Clock>,
    is_named: bool,
) -> OpenStore {
    OpenStore {
        tools: store.clone(),
        flows: store.clone(),
        usage: store.clone(),
        tokens: store.clone(),
        approvals: store.clone(),
        ledger: Arc::new(SqlLedger::new(store.clone())),
        texts: store.clone(),
        shared: Arc::new(SqlPorts(store)),
        pending_pins: None,
        clock,
        is_named,
        offers_tools: true,
    }
}
