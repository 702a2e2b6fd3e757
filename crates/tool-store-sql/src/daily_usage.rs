//! Figures of calls for each day, tool and principal.

use std::{ops::RangeInclusive, time::Duration};

use tool_core::{BoxFuture, DailyUsage, DailyUsageError, LatencyHistogram, UsageFigures, UsageKey, UtcDay};

use crate::{Database, SqlError, SqlRow, SqlStore, SqlTransaction, SqlValue};

/// Adds figures and returns the latencies that are stored: the row is locked from here to the end of the transaction, so
/// that nobody else changes them before they are written with the new ones.
const ADD: &str = "INSERT INTO daily_usage (day, tenant, principal, tool, version, server, n_calls, n_errors, n_cached, \
                   n_attempts, argument_bytes, result_bytes, cost, saved_cost, micros, latencies) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, '') \
                   ON CONFLICT (day, tenant, principal, tool, version, server) DO UPDATE SET \
                   n_calls = daily_usage.n_calls + excluded.n_calls, \
                   n_errors = daily_usage.n_errors + excluded.n_errors, \
                   n_cached = daily_usage.n_cached + excluded.n_cached, \
                   n_attempts = daily_usage.n_attempts + excluded.n_attempts, \
                   argument_bytes = daily_usage.argument_bytes + excluded.argument_bytes, \
                   result_bytes = daily_usage.result_bytes + excluded.result_bytes, \
                   cost = daily_usage.cost + excluded.cost, \
                   saved_cost = daily_usage.saved_cost + excluded.saved_cost, \
                   micros = daily_usage.micros + excluded.micros \
                   RETURNING latencies";
const SET_LATENCIES: &str = "UPDATE daily_usage SET latencies = $7 WHERE day = $1 AND tenant = $2 \
                             AND principal = $3 AND tool = $4 AND version = $5 AND server = $6";
const READ: &str = "SELECT day, tenant, principal, tool, version, server, n_calls, n_errors, n_cached, n_attempts, \
                    argument_bytes, result_bytes, cost, saved_cost, micros, latencies FROM daily_usage \
                    WHERE day >= $1 AND day <= $2";

impl<D: Database> DailyUsage for SqlStore<D> {
    fn add<'a>(
        &'a self,
        figures: &'a [(UsageKey, UsageFigures)],
    ) -> BoxFuture<'a, Result<(), DailyUsageError>> {
        Box::pin(async move {
            let added = self.add_usage(figures).await;
            added.map_err(|error| self.usage_error(&error))
        })
    }

    fn read(
        &self,
        days: RangeInclusive<UtcDay>,
    ) -> BoxFuture<'_, Result<Vec<(UsageKey, UsageFigures)>, DailyUsageError>> {
        Box::pin(async move {
            let read = self.read_usage(days).await;
            read.map_err(|error| self.usage_error(&error))
        })
    }

    fn forget(&self, before: UtcDay) -> BoxFuture<'_, Result<(), DailyUsageError>> {
        Box::pin(async move {
            let forgotten = async {
                let mut transaction = self.database().write().await?;
                let statement = "DELETE FROM daily_usage WHERE day < $1";
                transaction.execute(statement, vec![day(before)]).await?;
                transaction.commit().await
            };
            forgotten.await.map_err(|error| self.usage_error(&error))
        })
    }
}

impl<D: Database> SqlStore<D> {
    fn usage_error(&self, error: &SqlError) -> DailyUsageError {
        DailyUsageError::new(format!("{}: {error}", self.database().name()))
    }

    async fn add_usage(&self, figures: &[(UsageKey, UsageFigures)]) -> Result<(), SqlError> {
        let mut figures: Vec<_> = figures.iter().filter(|(key, _)| is_storable(key)).collect();
        if figures.is_empty() {
            return Ok(());
        }
        // All gateways lock rows in one order: none waits for another that waits for it.
        figures.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut transaction = self.database().write().await?;
        for (key, figures) in figures {
            add_row(&mut *transaction, key, figures).await?;
        }
        transaction.commit().await
    }

    async fn read_usage(
        &self,
        days: RangeInclusive<UtcDay>,
    ) -> Result<Vec<(UsageKey, UsageFigures)>, SqlError> {
        let Some(mut transaction) = self.database().read().await? else {
            return Ok(Vec::new());
        };
        let parameters = vec![day(*days.start()), day(*days.end())];
        let rows = transaction.fetch(READ, parameters).await?;
        let mut figures: Vec<_> = rows.into_iter().map(row).collect::<Result<_, _>>()?;
        // Databases differ in how they order texts.
        figures.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(figures)
    }
}

async fn add_row(
    transaction: &mut dyn SqlTransaction,
    key: &UsageKey,
    figures: &UsageFigures,
) -> Result<(), SqlError> {
    let mut parameters = key_columns(key);
    parameters.extend(
        [
            figures.n_calls,
            figures.n_errors,
            figures.n_cached,
            figures.n_attempts,
            figures.argument_bytes,
            figures.result_bytes,
            figures.cost,
            figures.saved_cost,
            u64::try_from(figures.time.as_micros()).unwrap_or(u64::MAX),
        ]
        .map(number),
    );
    let mut rows = transaction.fetch(ADD, parameters).await?;
    let stored = rows.first_mut().map(|row| row.text(0)).transpose()?;
    let mut latencies = histogram(&stored.unwrap_or_default())?;
    latencies.merge(&figures.latencies);
    let mut parameters = key_columns(key);
    parameters.push(text_of(&latencies).into());
    transaction.execute(SET_LATENCIES, parameters).await?;
    Ok(())
}

fn row(mut row: SqlRow) -> Result<(UsageKey, UsageFigures), SqlError> {
    let day = u32::try_from(row.int(0)?).map_err(|_| SqlError::Corrupt("a day of usage is no day".into()))?;
    let key = UsageKey::new(UtcDay::from_number(day), row.text(1)?, row.text(2)?, row.text(3)?);
    let [version, server] = [row.text(4)?, row.text(5)?].map(|text| (!text.is_empty()).then(|| text.into()));
    let mut figures = UsageFigures::default();
    for (at, slot) in [
        (6, &mut figures.n_calls),
        (7, &mut figures.n_errors),
        (8, &mut figures.n_cached),
        (9, &mut figures.n_attempts),
        (10, &mut figures.argument_bytes),
        (11, &mut figures.result_bytes),
        (12, &mut figures.cost),
        (13, &mut figures.saved_cost),
    ] {
        *slot = unsigned(row.int(at)?);
    }
    figures.time = Duration::from_micros(unsigned(row.int(14)?));
    figures.latencies = histogram(&row.text(15)?)?;
    Ok((key.with_version(version).with_server(server), figures))
}

fn key_columns(key: &UsageKey) -> Vec<SqlValue> {
    vec![
        day(key.day),
        (&*key.tenant).into(),
        (&*key.principal).into(),
        (&*key.tool).into(),
        // A column of a primary key has a value in every database.
        key.version.as_deref().unwrap_or_default().into(),
        key.server.as_deref().unwrap_or_default().into(),
    ]
}

/// Returns `true` for a key whose texts every database can hold.
fn is_storable(key: &UsageKey) -> bool {
    let optional = [key.version.as_deref(), key.server.as_deref()];
    let texts = [&*key.tenant, &*key.principal, &*key.tool];
    texts
        .into_iter()
        .chain(optional.into_iter().flatten())
        .all(|text| !text.contains('\0'))
}

fn day(day: UtcDay) -> SqlValue {
    i64::from(day.number()).into()
}

/// Largest number that is added at once: a sum of a million such numbers fits into a column.
const MOST: i64 = i64::MAX / 1_000_000;

fn number(number: u64) -> SqlValue {
    i64::try_from(number).unwrap_or(MOST).min(MOST).into()
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// Returns the text form of latencies: `BUCKET:COUNT`, separated by spaces.
fn text_of(latencies: &LatencyHistogram) -> String {
    let counts = latencies.buckets().iter();
    let counts: Vec<_> = counts.map(|(bucket, n)| format!("{bucket}:{n}")).collect();
    counts.join(" ")
}

fn histogram(text: &str) -> Result<LatencyHistogram, SqlError> {
    let counts: Option<Vec<(u16, u32)>> = text
        .split_ascii_whitespace()
        .map(|entry| {
            let (bucket, n) = entry.split_once(':')?;
            Some((bucket.parse().ok()?, n.parse().ok()?))
        })
        .collect();
    counts
        .and_then(LatencyHistogram::from_buckets)
        .ok_or_else(|| SqlError::Corrupt("the latencies of a tool cannot be read".to_owned()))
}
