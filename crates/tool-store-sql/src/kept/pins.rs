use std::{
    array, fmt,
    sync::{Arc, mpsc},
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use raw_json::{JsonKind, JsonLimits, RawJson, TextPart};
use tokio::{
    runtime::Handle,
    sync::Mutex as AsyncMutex,
    task::{block_in_place, spawn_blocking},
};
use tool_core::{BoxFuture, Feature};
use tool_registry::{Pin, PinKey, PinSet, Pins, PinsError, StoredPins};

use super::list_state::{PINS_REVISION, raise};
use crate::{Database, SqlDialect, SqlError, SqlRow, SqlStore, SqlTransaction, codec};

/// Pins of definitions in an SQL database. Clones share them.
///
/// The pins are read once, when the value is created, and again in [`Pins::refresh`]. A definition of first use is written in the
/// background; until that succeeds, each refresh tries again.
pub struct SqlPins<D>(Arc<Shared<D>>);

struct Shared<D> {
    store: Arc<SqlStore<D>>,
    /// `true` if definitions are read when they are first needed.
    reads_digests: bool,
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
        Self::new(store, false).await
    }

    /// Reads the pins without their definitions, which are most of the bytes. They are read when one is first needed, which blocks
    /// the thread of whoever needs it: see [`Pin::with_stored`].
    ///
    /// # Cancellation
    /// Dropping the future changes nothing.
    ///
    /// # Errors
    /// If the database cannot be read.
    ///
    /// # Panics
    /// A thread that needs a definition panics in a runtime with one thread, or in a `LocalSet`.
    pub async fn load_digests(store: Arc<SqlStore<D>>) -> Result<Self, PinsError> {
        Self::new(store, true).await
    }

    async fn new(store: Arc<SqlStore<D>>, reads_digests: bool) -> Result<Self, PinsError> {
        let shared = Shared {
            store,
            reads_digests,
            set: ArcSwap::default(),
            unwritten: Mutex::default(),
            changing: AsyncMutex::new(()),
        };
        shared.set.store(Arc::new(shared.read().await?));
        Ok(Self(Arc::new(shared)))
    }
}

impl<D: Database> Shared<D> {
    async fn read(&self) -> Result<PinSet, PinsError> {
        let read = match self.reads_digests {
            true => read_digests(&self.store).await,
            false => read_all(&self.store).await,
        };
        read.map_err(|error| not_read(&self.store, &error))
    }

    /// Writes the definitions of first use. Those that the database has stay.
    async fn write_first_used(&self) -> Result<(), SqlError> {
        let pins = self.unwritten.lock().clone();
        if pins.is_empty() {
            return Ok(());
        }
        let mut transaction = self.store.database().write().await?;
        raise(&mut *transaction, PINS_REVISION).await?;
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
                raise(&mut *transaction, PINS_REVISION).await?;
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
            let read = self.0.read().await?;
            let before = self.0.set.load_full();
            self.0.set.rcu(|_| {
                let mut set = read.clone();
                add_missing(&mut set, &self.0.unwritten.lock());
                set
            });
            Ok(*before != **self.0.set.load())
        })
    }

    fn flush(&self) -> BoxFuture<'_, Result<(), PinsError>> {
        Box::pin(async move {
            let _guard = self.0.changing.lock().await;
            let written = self.0.write_first_used().await;
            written.map_err(|error| not_written(&self.0.store, &error))
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
                          accepted_by, text_digest) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) \
                          ON CONFLICT (source, feature, name) DO NOTHING";
const ACCEPTED: &str = "INSERT INTO pins (source, feature, name, digest, definition, is_exact, version, accepted_at, \
                        accepted_by, text_digest) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) \
                        ON CONFLICT (source, feature, name) DO UPDATE SET digest = excluded.digest, \
                        definition = excluded.definition, is_exact = excluded.is_exact, version = excluded.version, \
                        accepted_at = excluded.accepted_at, accepted_by = excluded.accepted_by, \
                        text_digest = excluded.text_digest";

async fn insert(
    transaction: &mut dyn SqlTransaction,
    pin: &Pin,
    statement: &'static str,
) -> Result<(), SqlError> {
    let key = pin.key();
    // A definition that is shown without its secrets has another digest.
    let exact = pin
        .definition()
        .filter(|definition| raw_json::digest(definition) == *pin.digest());
    let text_digest = exact.map(|exact| raw_json::hex(&raw_json::text_digest(exact)));
    let parameters = vec![
        (&*key.source).into(),
        key.feature.as_str().into(),
        (&*key.name).into(),
        raw_json::hex(pin.digest()).into(),
        pin.definition().map(RawJson::as_str).into(),
        i64::from(exact.is_some()).into(),
        pin.version().map(|version| &**version).into(),
        pin.accepted_at().map(codec::millis).into(),
        pin.accepted_by().map(|by| &**by).into(),
        text_digest.into(),
    ];
    transaction.execute(statement, parameters).await?;
    Ok(())
}

/// Maximum number of pins in a row of a [`PinsQuery`]. A row of the result costs more than a row of the table, and large values are
/// parsed by one thread and take new memory each time.
const MAX_PINS: i64 = 512;

/// Query for pins whose rows hold [`MAX_PINS`] pins: each of `N` columns is a JSON array. All columns are gathered in one pass, so
/// that they have the same order.
struct PinsQuery<const N: usize> {
    /// Query for the pins behind a row. A further column has the number of the next row, if there is one.
    sqlite: &'static str,
    /// Query for all pins.
    postgres: &'static str,
}

/// Query for all that is known of pins. The text of a definition is a part of its array as it is, so that it is not escaped. SQLite
/// copies a text to end it with a zero byte, and no bytes.
const PINS: PinsQuery<9> = PinsQuery {
    sqlite: "SELECT json_group_array(source), json_group_array(feature), json_group_array(name), \
             json_group_array(digest), CAST('[' || coalesce(group_concat(coalesce(definition, 'null')), '') || ']' AS BLOB), \
             json_group_array(is_exact), json_group_array(version), json_group_array(accepted_at), \
             json_group_array(accepted_by), (SELECT min(rowid) FROM pins WHERE rowid > $1 + $2) \
             FROM pins WHERE rowid > $1 AND rowid <= $1 + $2",
    postgres: "SELECT CAST(json_agg(source) AS TEXT), CAST(json_agg(feature) AS TEXT), CAST(json_agg(name) AS TEXT), \
               CAST(json_agg(digest) AS TEXT), '[' || string_agg(coalesce(definition, 'null'), ',') || ']', \
               CAST(json_agg(is_exact) AS TEXT), CAST(json_agg(version) AS TEXT), \
               CAST(json_agg(accepted_at) AS TEXT), CAST(json_agg(accepted_by) AS TEXT) \
               FROM (SELECT *, (row_number() OVER () - 1) / $1 AS part FROM pins) AS numbered GROUP BY part",
};

/// Query for what a comparison of definitions needs.
const DIGESTS: PinsQuery<6> = PinsQuery {
    sqlite: "SELECT json_group_array(source), json_group_array(feature), json_group_array(name), \
             json_group_array(digest), json_group_array(version), json_group_array(text_digest), \
             (SELECT min(rowid) FROM pins WHERE rowid > $1 + $2) FROM pins WHERE rowid > $1 AND rowid <= $1 + $2",
    postgres: "SELECT CAST(json_agg(source) AS TEXT), CAST(json_agg(feature) AS TEXT), CAST(json_agg(name) AS TEXT), \
               CAST(json_agg(digest) AS TEXT), CAST(json_agg(version) AS TEXT), CAST(json_agg(text_digest) AS TEXT) \
               FROM (SELECT *, (row_number() OVER () - 1) / $1 AS part FROM pins) AS numbered GROUP BY part",
};

async fn read_all<D: Database>(store: &SqlStore<D>) -> Result<PinSet, SqlError> {
    read(store, &PINS, |columns, source| {
        let [
            own_source,
            feature,
            name,
            digest,
            definition,
            is_exact,
            version,
            accepted_at,
            accepted_by,
        ] = columns;
        let key = key([own_source, feature, name], source)?;
        let digest = || codec::digest(&text(digest)?);
        let pin = match given(definition) {
            Some(definition) if is_exact.as_str() != "0" => Pin::new(key, definition.to_raw()),
            Some(definition) => Pin::from_digest(key, digest()?).with_shown_definition(definition.to_raw()),
            None => Pin::from_digest(key, digest()?),
        };
        let pin = pin.with_version(given(version).map(text).transpose()?);
        Ok(match (given(accepted_at), given(accepted_by)) {
            (Some(at), Some(by)) => {
                let at = at.as_str().parse().map_err(|_| invalid())?;
                pin.accepted(codec::time(at), text(by)?)
            }
            _ => pin,
        })
    })
    .await
}

/// Reads pins that read their definitions when they are first needed.
async fn read_digests<D: Database>(store: &Arc<SqlStore<D>>) -> Result<PinSet, SqlError> {
    let stored = stored_pins(store.clone(), Handle::current());
    read(store, &DIGESTS, move |columns, source| {
        let [own_source, feature, name, digest, version, text_digest] = columns;
        let key = key([own_source, feature, name], source)?;
        let digest_of = |column| codec::digest(&text(column)?);
        let text_digest = given(text_digest).map(digest_of).transpose()?;
        let pin = Pin::from_digest(key, digest_of(digest)?).with_stored(text_digest, stored.clone());
        Ok(pin.with_version(given(version).map(text).transpose()?))
    })
    .await
}

/// Returns all that is known of the pins in a database, read when it is first needed.
fn stored_pins<D: Database>(store: Arc<SqlStore<D>>, runtime: Handle) -> Arc<StoredPins> {
    StoredPins::new(move || {
        let (sender, receiver) = mpsc::channel();
        let of_task = store.clone();
        runtime.spawn(async move {
            // Nobody waits any more if this fails.
            let _ = sender.send(read_all(&of_task).await);
        });
        // The thread may be the only one that runs tasks.
        match block_in_place(|| receiver.recv()) {
            Ok(Ok(set)) => Some(set),
            Ok(Err(error)) => {
                let database = store.database().name();
                tracing::warn!(database, %error, "the accepted definitions cannot be read");
                None
            }
            // The runtime ends.
            Err(_) => None,
        }
    })
}

/// Reads all pins. Pins are parsed while the next ones are read. `pin` makes one of its columns and the source of the pin before,
/// which pins share.
async fn read<D: Database, const N: usize>(
    store: &SqlStore<D>,
    query: &PinsQuery<N>,
    pin: impl Fn([TextPart<'_>; N], &mut Arc<str>) -> Result<Pin, SqlError> + Clone + Send + 'static,
) -> Result<PinSet, SqlError> {
    let Some(mut transaction) = store.database().read().await? else {
        return Ok(PinSet::default());
    };
    let mut parts = Vec::new();
    let mut parse = |row: &mut SqlRow| {
        let mut columns = [const { Vec::new() }; N];
        for (at, column) in columns.iter_mut().enumerate() {
            *column = row.bytes(at)?;
        }
        let pin = pin.clone();
        parts.push(spawn_blocking(move || pins(columns, pin)));
        Ok::<(), SqlError>(())
    };
    match store.database().dialect() {
        SqlDialect::Sqlite => {
            let mut after = 0;
            loop {
                let parameters = vec![after.into(), MAX_PINS.into()];
                let mut rows = transaction.fetch(query.sqlite, parameters).await?;
                let Some(row) = rows.first_mut() else { break };
                parse(row)?;
                let Some(next) = row.optional_int(N)? else {
                    break;
                };
                after = next - 1;
            }
        }
        SqlDialect::Postgres => {
            let mut rows = transaction.fetch(query.postgres, vec![MAX_PINS.into()]).await?;
            rows.iter_mut().try_for_each(parse)?;
        }
    }
    let mut set = PinSet::default();
    for part in parts {
        let part = part.await;
        let part = part.map_err(|error| SqlError::failed("the pins cannot be read").with_source(error))?;
        for pin in part? {
            set.insert(pin);
        }
    }
    Ok(set)
}

/// Depth of a column: that of a definition, in a list.
const DEPTH: usize = JsonLimits::RELAY.depth + 1;

/// Returns the pins of a row, whose columns are JSON arrays.
fn pins<const N: usize>(
    columns: [Vec<u8>; N],
    pin: impl Fn([TextPart<'_>; N], &mut Arc<str>) -> Result<Pin, SqlError>,
) -> Result<Vec<Arc<Pin>>, SqlError> {
    let limits = JsonLimits::RELAY.with_depth(DEPTH);
    let columns = columns
        .into_iter()
        .map(|column| RawJson::parse_within(column, limits));
    let columns: Vec<RawJson> = columns
        .collect::<Result<_, _>>()
        .map_err(|error| SqlError::Corrupt(format!("a pinned definition is no JSON: {error}")))?;
    let mut lists: Vec<_> = columns.iter().map(|column| column.as_part().items()).collect();
    let mut pins = Vec::new();
    let mut source: Arc<str> = Arc::from("");
    loop {
        let row: [_; N] = array::from_fn(|at| lists[at].next());
        if row.iter().all(Option::is_none) {
            return Ok(pins);
        }
        if row.iter().any(Option::is_none) {
            let reason = "a pinned definition is more than one value".to_owned();
            return Err(SqlError::Corrupt(reason));
        }
        let row = row.map(|column| column.expect("no column is missing"));
        pins.push(Arc::new(pin(row, &mut source)?));
    }
}

/// Makes the key of a pin from its source, kind and name. `source` is that of the pin before.
fn key([own_source, word, name]: [TextPart<'_>; 3], source: &mut Arc<str>) -> Result<PinKey, SqlError> {
    let own_source = own_source.text().ok_or_else(invalid)?;
    if **source != *own_source {
        *source = own_source.into();
    }
    let word = word.text().ok_or_else(invalid)?;
    let features = Feature::ALL.iter().copied();
    let feature = features.into_iter().find(|feature| feature.as_str() == word);
    let feature =
        feature.ok_or_else(|| SqlError::Corrupt(format!("unknown kind `{}`", word.escape_debug())))?;
    Ok(PinKey::new(Arc::clone(source), feature, text(name)?))
}

fn invalid() -> SqlError {
    SqlError::Corrupt("a pin has columns of other types".to_owned())
}

fn text(column: TextPart<'_>) -> Result<String, SqlError> {
    Ok(column.text().ok_or_else(invalid)?.into_owned())
}

/// Returns a column that is not empty.
fn given(column: TextPart<'_>) -> Option<TextPart<'_>> {
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
