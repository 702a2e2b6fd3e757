use std::{fmt, sync::Arc, thread::available_parallelism};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use raw_json::{JsonKind, JsonLimits, RawJson};
use tokio::{runtime::Handle, sync::Mutex as AsyncMutex, task::spawn_blocking};
use tool_core::{BoxFuture, Feature};
use tool_registry::{Pin, PinKey, PinSet, Pins, PinsError};

use crate::{Database, SqlDialect, SqlError, SqlStore, SqlTransaction, codec};

/// Pins of definitions in an SQL database. Clones share them.
///
/// The pins are read once, when the value is created, and again in [`Pins::refresh`]. A definition of first use is written in the
/// background; until that succeeds, each refresh tries again.
pub struct SqlPins<D>(Arc<Shared<D>>);

struct Shared<D> {
    store: Arc<SqlStore<D>>,
    set: ArcSwap<PinSet>,
    /// Definitions of first use that are not written yet.
    unwritten: Mutex<Vec<Arc<Pin>>>,
    /// Held while the database and the set are brought together, so that no older reading replaces a newer one.
    changing: AsyncMutex<()>,
}

impl<D: Database> SqlPins<D> {
    /// Reads the pins in the database of a store.
    ///
    /// # Cancellation
    /// Dropping the future changes nothing.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub async fn load(store: Arc<SqlStore<D>>) -> Result<Self, PinsError> {
        let set = read_all(&store).await.map_err(|error| not_read(&store, &error))?;
        Ok(Self(Arc::new(Shared {
            store,
            set: ArcSwap::from_pointee(set),
            unwritten: Mutex::default(),
            changing: AsyncMutex::new(()),
        })))
    }
}

impl<D: Database> Shared<D> {
    /// Writes the definitions of first use. Those that the database has stay.
    async fn write_first_used(&self) -> Result<(), SqlError> {
        let pins = self.unwritten.lock().clone();
        if pins.is_empty() {
            return Ok(());
        }
        let mut transaction = self.store.database().write().await?;
        for pin in &pins {
            insert(&mut *transaction, pin, FIRST_USED).await?;
        }
        transaction.commit().await?;
        // Others may have been added meanwhile, behind these.
        self.unwritten.lock().drain(..pins.len());
        Ok(())
    }

    /// Writes the definitions of first use, and logs a failure.
    async fn try_to_write_first_used(&self) {
        if let Err(error) = self.write_first_used().await {
            let database = self.store.database().name();
            tracing::warn!(database, %error, "the pins of first use are not stored");
        }
    }

    fn change(&self, change: impl Fn(&mut PinSet)) {
        self.set.rcu(|set| {
            let mut set = PinSet::clone(set);
            change(&mut set);
            set
        });
    }
}

impl<D: Database> Pins for SqlPins<D> {
    fn snapshot(&self) -> Arc<PinSet> {
        self.0.set.load_full()
    }

    fn add_first_used(&self, pins: Vec<Pin>) {
        let pins: Vec<_> = pins.into_iter().map(Arc::new).collect();
        self.0.change(|set| add_missing(set, &pins));
        // The others are pins of this run: a database may refuse their keys, and with them all that is written at once.
        let storable = pins.into_iter().filter(|pin| is_storable(pin));
        self.0.unwritten.lock().extend(storable);
        if let Ok(runtime) = Handle::try_current() {
            let shared = self.0.clone();
            runtime.spawn(async move {
                let _guard = shared.changing.lock().await;
                shared.try_to_write_first_used().await;
            });
        }
    }

    fn accept(&self, pins: Vec<Pin>) -> BoxFuture<'_, Result<(), PinsError>> {
        Box::pin(async move {
            let _guard = self.0.changing.lock().await;
            let written = async {
                let mut transaction = self.0.store.database().write().await?;
                for pin in &pins {
                    insert(&mut *transaction, pin, ACCEPTED).await?;
                }
                transaction.commit().await
            };
            written
                .await
                .map_err(|error: SqlError| not_written(&self.0.store, &error))?;
            let pins: Vec<_> = pins.into_iter().map(Arc::new).collect();
            self.0.change(|set| {
                for pin in &pins {
                    set.insert(pin.clone());
                }
            });
            Ok(())
        })
    }

    fn refresh(&self) -> BoxFuture<'_, Result<bool, PinsError>> {
        Box::pin(async move {
            let _guard = self.0.changing.lock().await;
            self.0.try_to_write_first_used().await;
            let read = read_all(&self.0.store).await;
            let read = read.map_err(|error| not_read(&self.0.store, &error))?;
            let before = self.0.set.load_full();
            self.0.set.rcu(|_| {
                let mut set = read.clone();
                add_missing(&mut set, &self.0.unwritten.lock());
                set
            });
            Ok(*before != **self.0.set.load())
        })
    }
}

/// Maximum length of the name in a stored pin, in bytes. PostgreSQL bounds the entries of its indexes.
const MAX_NAME: usize = 2_000;

/// Returns `true` for a pin that every database can hold.
fn is_storable(pin: &Pin) -> bool {
    let key = pin.key();
    key.name.len() <= MAX_NAME && !key.name.contains('\0') && !key.source.contains('\0')
}

/// Adds pins whose keys have none yet.
fn add_missing(set: &mut PinSet, pins: &[Arc<Pin>]) {
    for pin in pins {
        let key = pin.key();
        if set.get(&key.source, key.feature, &key.name).is_none() {
            set.insert(pin.clone());
        }
    }
}

const FIRST_USED: &str = "INSERT INTO pins (source, feature, name, digest, definition, is_exact, version, accepted_at, \
                          accepted_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
                          ON CONFLICT (source, feature, name) DO NOTHING";
const ACCEPTED: &str = "INSERT INTO pins (source, feature, name, digest, definition, is_exact, version, accepted_at, \
                        accepted_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
                        ON CONFLICT (source, feature, name) DO UPDATE SET digest = excluded.digest, \
                        definition = excluded.definition, is_exact = excluded.is_exact, version = excluded.version, \
                        accepted_at = excluded.accepted_at, accepted_by = excluded.accepted_by";

async fn insert(
    transaction: &mut dyn SqlTransaction,
    pin: &Pin,
    statement: &'static str,
) -> Result<(), SqlError> {
    let key = pin.key();
    // A definition that is shown without its secrets has another digest.
    let is_exact = pin
        .definition()
        .is_some_and(|definition| raw_json::digest(definition) == *pin.digest());
    let parameters = vec![
        (&*key.source).into(),
        key.feature.as_str().into(),
        (&*key.name).into(),
        raw_json::hex(pin.digest()).into(),
        pin.definition().map(RawJson::as_str).into(),
        i64::from(is_exact).into(),
        pin.version().map(|version| &**version).into(),
        pin.accepted_at().map(codec::millis).into(),
        pin.accepted_by().map(|by| &**by).into(),
    ];
    transaction.execute(statement, parameters).await?;
    Ok(())
}

/// Queries for all pins, one row for each kind of entry of a source: a row of the result costs more than a row of the table. The
/// text of a definition is a part of the row's JSON as it is, so that it is neither escaped nor copied.
const PINS_OF_SQLITE: &str = "SELECT source, feature, '[' || group_concat('[' || json_quote(name) || ',' || json_quote(digest) \
                              || ',' || coalesce(definition, 'null') || ',' || is_exact || ',' || json_quote(version) || ',' \
                              || coalesce(accepted_at, 'null') || ',' || json_quote(accepted_by) || ']') || ']' \
                              FROM pins GROUP BY source, feature";
const PINS_OF_POSTGRES: &str = "SELECT source, feature, '[' || string_agg('[' || CAST(to_json(name) AS TEXT) || ',' \
                                || CAST(to_json(digest) AS TEXT) || ',' || coalesce(definition, 'null') || ',' || is_exact \
                                || ',' || coalesce(CAST(to_json(version) AS TEXT), 'null') || ',' \
                                || coalesce(CAST(accepted_at AS TEXT), 'null') || ',' \
                                || coalesce(CAST(to_json(accepted_by) AS TEXT), 'null') || ']', ',') || ']' \
                                FROM pins GROUP BY source, feature";

/// Minimum number of groups for each thread.
const MIN_GROUPS: usize = 32;

async fn read_all<D: Database>(store: &SqlStore<D>) -> Result<PinSet, SqlError> {
    let Some(mut transaction) = store.database().read().await? else {
        return Ok(PinSet::default());
    };
    let query = match store.database().dialect() {
        SqlDialect::Sqlite => PINS_OF_SQLITE,
        SqlDialect::Postgres => PINS_OF_POSTGRES,
    };
    let mut rows = transaction.fetch(query, Vec::new()).await?;
    let mut groups = Vec::with_capacity(rows.len());
    for row in &mut rows {
        groups.push((row.text(0)?, row.text(1)?, row.text(2)?));
    }
    // Definitions are parsed, so many of them take all cores.
    let n_threads = available_parallelism().map_or(1, usize::from);
    let n_groups = groups.len().div_ceil(n_threads).max(MIN_GROUPS);
    let mut parts = Vec::new();
    while !groups.is_empty() {
        let part = groups.split_off(groups.len().saturating_sub(n_groups));
        parts.push(spawn_blocking(move || {
            part.into_iter().map(pins).collect::<Result<Vec<_>, _>>()
        }));
    }
    let mut set = PinSet::default();
    for part in parts {
        let part = part.await;
        let part = part.map_err(|error| SqlError::failed("the pins cannot be read").with_source(error))?;
        for pin in part?.into_iter().flatten() {
            set.insert(pin);
        }
    }
    Ok(set)
}

/// Depth of a group of pins: that of a definition, in a row of a list.
const DEPTH: usize = JsonLimits::RELAY.depth + 2;

/// Returns the pins of one kind of entry of a source, from a list of rows in JSON.
fn pins((source, word, rows): (String, String, String)) -> Result<Vec<Arc<Pin>>, SqlError> {
    let features = Feature::ALL.iter().copied();
    let feature = features.into_iter().find(|feature| feature.as_str() == word);
    let feature =
        feature.ok_or_else(|| SqlError::Corrupt(format!("unknown kind `{}`", word.escape_debug())))?;
    let rows = RawJson::parse_within(rows, JsonLimits::RELAY.with_depth(DEPTH))
        .map_err(|error| SqlError::Corrupt(format!("a pinned definition is no JSON: {error}")))?;
    let source: Arc<str> = source.into();
    let pins = rows.items().map(|row| pin(&source, feature, &row).map(Arc::new));
    pins.collect()
}

/// Reads a row of the table of pins, without its source and feature.
fn pin(source: &Arc<str>, feature: Feature, row: &RawJson) -> Result<Pin, SqlError> {
    let invalid = || SqlError::Corrupt("a pin has columns of other types".to_owned());
    let columns: [RawJson; 7] = row
        .items()
        .collect::<Vec<_>>()
        .try_into()
        .map_err(|_| invalid())?;
    let [name, digest, shown, is_exact, version, accepted_at, accepted_by] = columns;
    let text = |column: &RawJson| column.string().ok_or_else(invalid);
    let key = PinKey::new(Arc::clone(source), feature, text(&name)?);
    let digest = codec::digest(&text(&digest)?)?;
    let pin = match given(shown) {
        Some(definition) if is_exact.as_str() != "0" => Pin::new(key, definition),
        Some(definition) => Pin::from_digest(key, digest).with_shown_definition(definition),
        None => Pin::from_digest(key, digest),
    };
    let pin = pin.with_version(given(version).as_ref().map(text).transpose()?);
    Ok(match (given(accepted_at), given(accepted_by)) {
        (Some(at), Some(by)) => {
            let at = at.to().map_err(|_| invalid())?;
            pin.accepted(codec::time(at), text(&by)?)
        }
        _ => pin,
    })
}

/// Returns a column that is not empty.
fn given(column: RawJson) -> Option<RawJson> {
    (column.kind() != JsonKind::Null).then_some(column)
}

fn not_read<D: Database>(store: &SqlStore<D>, error: &SqlError) -> PinsError {
    PinsError::Read {
        place: store.database().name().to_owned(),
        reason: error.to_string(),
    }
}

fn not_written<D: Database>(store: &SqlStore<D>, error: &SqlError) -> PinsError {
    PinsError::Write {
        place: store.database().name().to_owned(),
        reason: error.to_string(),
    }
}

impl<D> Clone for SqlPins<D> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<D: Database> fmt::Debug for SqlPins<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlPins")
            .field("database", self.0.store.database())
            .field("n_pins", &self.0.set.load().len())
            .finish_non_exhaustive()
    }
}
