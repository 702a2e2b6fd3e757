use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::Mutex as AsyncMutex,
    time::{Instant, sleep},
};
use tool_registry::StoreError;

use crate::{Database, SqlError, SqlStore, codec};

/// Maximum number of pairs of a tool and a query of one tenant. Those that were used last stay.
const MAX_PAIRS: usize = 20_000;
/// Maximum size of a query, in bytes. The rest is cut off.
const MAX_QUERY: usize = 256;
/// Time for which uses are gathered before they are written.
const PAUSE: Duration = Duration::from_secs(1);
/// Age at which what was read is read again, as soon as somebody asks for it.
const MAX_AGE: Duration = Duration::from_secs(5);

/// Queries that led to successful calls, in an SQL database. Clones share them.
///
/// They are read when the value is created, and then in the background: what other processes recorded counts for the searches
/// that begin 5 s later. A use of this process counts at once, and is written in the background: one that is lost with the process
/// costs a little of the ranking.
pub struct SqlUsage<D>(Arc<Shared<D>>);

struct Shared<D> {
    store: Arc<SqlStore<D>>,
    state: Mutex<State>,
    /// Held while the database and the counts are brought together.
    changing: AsyncMutex<()>,
}

/// Tool and query.
type Pair = (Arc<str>, Arc<str>);

#[derive(Default)]
struct State {
    tenants: HashMap<Arc<str>, TenantUse>,
    /// Uses that are not written yet.
    unwritten: BTreeMap<(Arc<str>, Pair), u32>,
    is_writing: bool,
    is_reading: bool,
    read_at: Option<Instant>,
}

#[derive(Default)]
struct TenantUse {
    revision: u64,
    counts: BTreeMap<Pair, u32>,
}

/// Returns `true` for a text that every database can hold.
fn is_storable(text: &str) -> bool {
    !text.contains('\0')
}

impl<D: Database> SqlUsage<D> {
    /// Reads the uses in the database of a store.
    ///
    /// # Cancellation
    /// Dropping the future changes nothing.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub async fn load(store: Arc<SqlStore<D>>) -> Result<Self, StoreError> {
        let usage = Self(Arc::new(Shared {
            store,
            state: Mutex::default(),
            changing: AsyncMutex::new(()),
        }));
        usage.refresh().await?;
        Ok(usage)
    }

    /// Records that a tool which this query found was called with success. Returns at once.
    pub fn record(&self, tenant: &str, tool: &str, query: &str) {
        let query = &query[..query.floor_char_boundary(MAX_QUERY)];
        if !is_storable(tool) || !is_storable(query) {
            return;
        }
        let pair: Pair = (tool.into(), query.into());
        let is_writing = {
            let mut state = self.0.state.lock();
            let use_of = state.tenants.entry(tenant.into()).or_default();
            if use_of.counts.len() >= MAX_PAIRS && !use_of.counts.contains_key(&pair) {
                return;
            }
            use_of.revision += 1;
            let count = use_of.counts.entry(pair.clone()).or_default();
            *count = count.saturating_add(1);
            *state.unwritten.entry((tenant.into(), pair)).or_default() += 1;
            std::mem::replace(&mut state.is_writing, true)
        };
        if is_writing {
            return;
        }
        let token = Token::new(&self.0, |state| &mut state.is_writing);
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                sleep(PAUSE).await;
                let shared = token.release();
                let _guard = shared.changing.lock().await;
                if let Err(error) = shared.write().await {
                    let database = shared.store.database().name();
                    tracing::warn!(database, %error, "uses of tools are not stored");
                }
            });
        }
    }

    /// Reads in the background if what is known is too old.
    fn read_if_old(&self) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        {
            let mut state = self.0.state.lock();
            let is_old = state.read_at.is_none_or(|read_at| read_at.elapsed() >= MAX_AGE);
            if !is_old || std::mem::replace(&mut state.is_reading, true) {
                return;
            }
        }
        let token = Token::new(&self.0, |state| &mut state.is_reading);
        runtime.spawn(async move {
            let shared = &token.shared;
            let _guard = shared.changing.lock().await;
            let read = shared.read().await;
            // Also after a failure: a database that is away is not asked at each search.
            shared.state.lock().read_at = Some(Instant::now());
            if let Err(error) = read {
                let database = shared.store.database().name();
                tracing::debug!(database, %error, "uses of tools are not read");
            }
        });
    }

    /// Returns the tools that a tenant used, each with a query that found it and the number of successful calls.
    #[must_use]
    pub fn records(&self, tenant: &str) -> Vec<(Arc<str>, Arc<str>, u32)> {
        let state = self.0.state.lock();
        let counts = state
            .tenants
            .get(tenant)
            .into_iter()
            .flat_map(|use_of| &use_of.counts);
        counts
            .map(|((tool, query), count)| (tool.clone(), query.clone(), *count))
            .collect()
    }

    /// Returns a number that changes with every change of a tenant's uses. If they were not read for 5 s, they are read again in the
    /// background.
    #[must_use]
    pub fn revision(&self, tenant: &str) -> u64 {
        self.read_if_old();
        self.0
            .state
            .lock()
            .tenants
            .get(tenant)
            .map_or(0, |use_of| use_of.revision)
    }

    /// Writes the uses that are not written yet, and reads those that others have written.
    ///
    /// # Cancellation
    /// If the future is dropped, uses may be written, and nothing is read.
    ///
    /// # Errors
    /// If the database does not work. What was known stays.
    pub async fn refresh(&self) -> Result<(), StoreError> {
        let shared = &self.0;
        let _guard = shared.changing.lock().await;
        let refreshed = async {
            shared.write().await?;
            shared.read().await
        };
        refreshed
            .await
            .map_err(|error: SqlError| error.of_store(shared.store.database().name()))
    }
}

impl<D: Database> Shared<D> {
    async fn write(&self) -> Result<(), SqlError> {
        let uses = self.state.lock().unwritten.clone();
        if uses.is_empty() {
            return Ok(());
        }
        let now = codec::millis(self.store.clock().wall());
        let mut transaction = self.store.database().write().await?;
        for ((tenant, (tool, query)), count) in &uses {
            let statement = "INSERT INTO search_usage (tenant, tool, query, n_calls, used_at) \
                             VALUES ($1, $2, $3, $4, $5) ON CONFLICT (tenant, tool, query) DO UPDATE SET \
                             n_calls = search_usage.n_calls + excluded.n_calls, used_at = excluded.used_at";
            let parameters = vec![
                (&**tenant).into(),
                (&**tool).into(),
                (&**query).into(),
                i64::from(*count).into(),
                now.into(),
            ];
            transaction.execute(statement, parameters).await?;
        }
        let tenants: BTreeSet<&str> = uses.keys().map(|(tenant, _)| &**tenant).collect();
        for tenant in tenants {
            // `OFFSET` is MAX_PAIRS. With fewer pairs, nothing is compared.
            let oldest = "DELETE FROM search_usage WHERE tenant = $1 AND used_at <= (SELECT used_at FROM search_usage \
                          WHERE tenant = $1 ORDER BY used_at DESC LIMIT 1 OFFSET 20000)";
            transaction.execute(oldest, vec![tenant.into()]).await?;
        }
        transaction.commit().await?;
        let mut state = self.state.lock();
        for (key, count) in uses {
            let left = state
                .unwritten
                .get(&key)
                .map_or(0, |unwritten| unwritten.saturating_sub(count));
            match left {
                0 => state.unwritten.remove(&key),
                left => state.unwritten.insert(key, left),
            };
        }
        Ok(())
    }

    async fn read(&self) -> Result<(), SqlError> {
        let mut tenants: HashMap<Arc<str>, BTreeMap<Pair, u32>> = HashMap::new();
        if let Some(mut transaction) = self.store.database().read().await? {
            let query = "SELECT tenant, tool, query, n_calls FROM search_usage ORDER BY used_at DESC";
            for mut row in transaction.fetch(query, Vec::new()).await? {
                let tenant: Arc<str> = row.text(0)?.into();
                let pair: Pair = (row.text(1)?.into(), row.text(2)?.into());
                let counts = tenants.entry(tenant).or_default();
                if counts.len() < MAX_PAIRS {
                    counts.insert(pair, u32::try_from(row.int(3)?).unwrap_or(u32::MAX));
                }
            }
        }
        let mut state = self.state.lock();
        state.read_at = Some(Instant::now());
        for ((tenant, pair), count) in &state.unwritten {
            let counts = tenants.entry(tenant.clone()).or_default();
            let known = counts.entry(pair.clone()).or_default();
            *known = known.saturating_add(*count);
        }
        for (tenant, counts) in tenants {
            let use_of = state.tenants.entry(tenant).or_default();
            if use_of.counts != counts {
                use_of.revision += 1;
                use_of.counts = counts;
            }
        }
        Ok(())
    }
}

/// Marks that a task reads or will write, by a flag that is reset with the task: also if there is no runtime or it ends.
struct Token<D> {
    shared: Arc<Shared<D>>,
    flag: fn(&mut State) -> &mut bool,
}

impl<D> Token<D> {
    fn new(shared: &Arc<Shared<D>>, flag: fn(&mut State) -> &mut bool) -> Self {
        Self {
            shared: shared.clone(),
            flag,
        }
    }

    fn release(self) -> Arc<Shared<D>> {
        self.shared.clone()
    }
}

impl<D> Drop for Token<D> {
    fn drop(&mut self) {
        *(self.flag)(&mut self.shared.state.lock()) = false;
    }
}

impl<D> Clone for SqlUsage<D> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<D: Database> fmt::Debug for SqlUsage<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlUsage")
            .field("database", self.0.store.database())
            .finish_non_exhaustive()
    }
}
