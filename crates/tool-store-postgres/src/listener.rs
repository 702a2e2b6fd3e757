//! Connection that listens for the changes of all gateways.

use std::{sync::Arc, time::Duration};

use sqlx::postgres::PgListener;
use tokio::{sync::watch, task::JoinHandle};

use crate::{
    PostgresOptions,
    connections::{pool_options, within},
    transaction::CHANNEL,
};

/// Pause before the first attempt to connect again. It doubles up to [`MAX_PAUSE`].
const MIN_PAUSE: Duration = Duration::from_millis(100);
/// Longest pause between attempts to connect again.
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// Time without a notification after which the connection is tested.
const QUIET_LIMIT: Duration = Duration::from_secs(30);

/// Task that listens. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Listener(JoinHandle<()>);

impl Listener {
    /// Starts the task. It raises `changes` for each announced change of the store, and whenever it begins to listen:
    /// changes from before then were not heard.
    pub(crate) fn start(options: PostgresOptions, changes: Arc<watch::Sender<u64>>) -> Self {
        Self(tokio::spawn(async move {
            let mut pause = MIN_PAUSE;
            loop {
                if let Ok(mut listener) = connect(&options).await {
                    pause = MIN_PAUSE;
                    wake(&changes);
                    hear(&mut listener, &options, &changes).await;
                }
                // A random part keeps the gateways from coming back all at once.
                tokio::time::sleep(pause.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
                pause = MAX_PAUSE.min(2 * pause);
            }
        }))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn wake(changes: &watch::Sender<u64>) {
    changes.send_modify(|n_changes| *n_changes += 1);
}

async fn connect(options: &PostgresOptions) -> Result<PgListener, sqlx::Error> {
    // A pool is the only way to a listener. This one ends with its connection.
    let pool = pool_options(options)
        .max_connections(1)
        .idle_timeout(None)
        .max_lifetime(None)
        .connect_lazy_with(options.connect().clone());
    let mut listener = PgListener::connect_with(&pool).await?;
    // The loop above connects, with pauses, and wakes the waiters.
    listener.eager_reconnect(false);
    within(options.connect_timeout, listener.listen(CHANNEL)).await?;
    Ok(listener)
}

/// Wakes the waiters for each change until the connection is lost.
async fn hear(listener: &mut PgListener, options: &PostgresOptions, changes: &watch::Sender<u64>) {
    loop {
        match tokio::time::timeout(QUIET_LIMIT, listener.try_recv()).await {
            Ok(Ok(Some(notification))) => {
                if notification.payload() == options.schema() {
                    wake(changes);
                }
            }
            Ok(Ok(None) | Err(_)) => return,
            // A connection whose other end vanished without a word would be silent for ever.
            Err(_) => {
                let test = sqlx::query("SELECT 1").execute(&mut *listener);
                if within(options.connect_timeout, test).await.is_err() {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tp_postgres::PostgresServer;

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn only_changes_of_the_own_schema_wake_the_waiters() {
        let database = match PostgresServer::shared().and_then(PostgresServer::create_database) {
            Ok(database) => database,
            Err(error) => return tool_testkit::skip(error.to_string()),
        };
        let options = PostgresOptions::new(&database.url()).expect("a URL");
        let changes = Arc::new(watch::Sender::new(0));
        let mut seen = changes.subscribe();
        let _listener = Listener::start(options, changes);
        seen.changed().await.expect("it listens");
        for round in 2..12 {
            let announce = "SELECT pg_notify('toolplane', 'other'), pg_notify('toolplane', 'toolplane')";
            database.sql(announce).expect("works");
            seen.changed().await.expect("it heard");
            assert_eq!(*seen.borrow_and_update(), round);
        }
    }
}
