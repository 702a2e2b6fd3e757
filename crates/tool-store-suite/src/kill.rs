//! Programs that are killed at seeded points of their work with a database: SIGKILL, as the kernel does when memory is short.
//!
//! A test starts its own binary again, with the name of a test that plays the killed program. Such a test calls [`role`], and does
//! nothing without a role.

use std::{
    env,
    fmt::Display,
    io::{self, Write as _},
    process::{Command, Output},
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    thread,
    time::Duration,
};

use rustix::process::{Signal, getpid, kill_process};
use tool_core::BoxFuture;
use tool_store_sql::{ChangeWatch, Database, SqlError, SqlRow, SqlTransaction, SqlValue};

/// Number of points in a soak, and the share of them that every run of the tests takes.
const N_POINTS: u64 = 200;
const SHARE: usize = 10;

/// Variable that makes tests take all points: `cargo xtask soak` sets it.
const SOAK: &str = "TOOLPLANE_SOAK";
/// Variable with the role of a killed program.
const ROLE: &str = "TOOLPLANE_KILL_ROLE";

/// Returns the seeds of the points: all of them in a soak, and otherwise a tenth.
pub fn points() -> impl Iterator<Item = u64> {
    let share = match env::var_os(SOAK) {
        Some(_) => 1,
        None => SHARE,
    };
    (0..N_POINTS).step_by(share)
}

/// Returns a number below `end` that depends on the seed and the purpose only (`SplitMix64`).
#[must_use]
pub fn seeded(seed: u64, purpose: u64, end: u64) -> u64 {
    let mut number = seed
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(purpose.wrapping_mul(0xd1b5_4a32_d192_ed03));
    number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (number ^ number >> 31) % end.max(1)
}

/// Starts the test `name` of this binary as another process, in this role, and waits for its end.
///
/// # Panics
/// If the process cannot be started.
#[must_use]
pub fn run(name: &str, role: &[&str]) -> Output {
    let mut command = Command::new(env::current_exe().expect("the path of this program"));
    command.args([name, "--exact", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, role.join("\n"));
    command.output().expect("started")
}

/// Returns the role of this process, if it is a killed program.
#[must_use]
pub fn role() -> Option<Vec<String>> {
    let role = env::var_os(ROLE)?.into_string().ok()?;
    Some(role.split('\n').map(str::to_owned).collect())
}

/// Prints a line of a killed program.
///
/// # Panics
/// If nobody reads it.
pub fn say(line: impl Display) {
    writeln!(io::stdout(), "{line}").expect("the test reads it");
}

/// Returns what a killed program has printed on lines that begin with this word.
#[must_use]
pub fn lines(output: &Output, word: &str) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    // A line that is cut off counts for nothing.
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let lines = whole.lines().filter_map(|line| line.split_once(word));
    lines.map(|(_, rest)| rest.trim().to_owned()).collect()
}

/// Kills this process when a number of steps of its work were passed.
#[derive(Debug)]
pub struct KillSwitch {
    left: AtomicI64,
    delay: Duration,
}

impl KillSwitch {
    /// Creates a switch that kills the process this long after `n_steps`; never for 0.
    #[must_use]
    pub fn new(n_steps: u64, delay: Duration) -> Self {
        let left = AtomicI64::new(i64::try_from(n_steps).unwrap_or(i64::MAX));
        Self { left, delay }
    }

    /// Passes a step.
    pub fn pass(&self) {
        if self.left.fetch_sub(1, Ordering::SeqCst) != 1 {
            return;
        }
        let delay = self.delay;
        if delay.is_zero() {
            die();
        }
        thread::spawn(move || {
            thread::sleep(delay);
            die();
        });
    }
}

/// Database that kills the process after a number of steps: the beginnings and ends of statements and of transactions.
#[derive(Debug)]
pub struct KillingDatabase<D> {
    inner: D,
    switch: Arc<KillSwitch>,
}

impl<D: Database> KillingDatabase<D> {
    /// Creates a database whose steps pass a switch.
    #[must_use]
    pub fn new(inner: D, switch: KillSwitch) -> Self {
        let switch = Arc::new(switch);
        Self { inner, switch }
    }
}

fn die() {
    kill_process(getpid(), Signal::KILL).expect("a process may kill itself");
}

impl<D: Database> Database for KillingDatabase<D> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn dialect(&self) -> tool_store_sql::SqlDialect {
        self.inner.dialect()
    }

    fn read(&self) -> BoxFuture<'_, Result<Option<Box<dyn SqlTransaction>>, SqlError>> {
        self.inner.read()
    }

    fn write(&self) -> BoxFuture<'_, Result<Box<dyn SqlTransaction>, SqlError>> {
        Box::pin(async move {
            self.switch.pass();
            let inner = self.inner.write().await?;
            self.switch.pass();
            let switch = self.switch.clone();
            Ok(Box::new(KillingTransaction { inner, switch }) as _)
        })
    }

    fn watch(&self) -> BoxFuture<'_, Result<Box<dyn ChangeWatch + '_>, SqlError>> {
        self.inner.watch()
    }

    fn notify(&self) -> BoxFuture<'_, ()> {
        self.inner.notify()
    }
}

struct KillingTransaction {
    inner: Box<dyn SqlTransaction>,
    switch: Arc<KillSwitch>,
}

impl SqlTransaction for KillingTransaction {
    fn execute<'a>(
        &'a mut self,
        statement: &'static str,
        parameters: Vec<SqlValue>,
    ) -> BoxFuture<'a, Result<u64, SqlError>> {
        Box::pin(async move {
            let result = self.inner.execute(statement, parameters).await;
            self.switch.pass();
            result
        })
    }

    fn fetch<'a>(
        &'a mut self,
        query: &'static str,
        parameters: Vec<SqlValue>,
    ) -> BoxFuture<'a, Result<Vec<SqlRow>, SqlError>> {
        Box::pin(async move {
            let result = self.inner.fetch(query, parameters).await;
            self.switch.pass();
            result
        })
    }

    fn commit<'a>(self: Box<Self>) -> BoxFuture<'a, Result<(), SqlError>>
    where
        Self: 'a,
    {
        Box::pin(async move {
            self.switch.pass();
            let result = self.inner.commit().await;
            self.switch.pass();
            result
        })
    }
}
