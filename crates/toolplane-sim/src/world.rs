use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep},
};
use toolplane::{
    RawJson,
    core::{
        CallContext, Descriptor, DynBackend, ErrorKind, Executor, InProcess, Invoke, Outcome, PrepareError,
        Reply, ToolError,
    },
};

use crate::{
    client::{KEPT, QUESTIONS},
    faults::{AttemptFate, AttemptPlan, FaultSchedule},
    record::{AttemptEnd, AttemptRecord, OperationRecord, SimulationRecord},
};

/// The backend of all tools. It executes what reaches it, even if the caller is gone.
#[derive(Clone)]
pub(crate) struct World(Arc<Inner>);

struct Inner {
    schedule: FaultSchedule,
    start: Instant,
    /// `true` if the faults are over.
    is_calm: AtomicBool,
    record: Mutex<SimulationRecord>,
}

/// Returns the questions to the cached tools.
fn questions() -> impl Iterator<Item = OperationRecord> {
    let each = |(tool, is_repeatable)| {
        let question = OperationRecord {
            tool,
            is_repeatable,
            is_kept: true,
            ..OperationRecord::default()
        };
        vec![question; QUESTIONS]
    };
    KEPT.into_iter().flat_map(each)
}

/// Guard of a running attempt, which records its end also if its future is dropped.
struct AttemptGuard {
    world: World,
    attempt: usize,
}

impl AttemptGuard {
    fn change(&self, change: impl FnOnce(&mut AttemptRecord, Duration)) {
        let now = self.world.now();
        change(&mut self.world.record().attempts[self.attempt], now);
    }
}

impl Drop for AttemptGuard {
    fn drop(&mut self) {
        self.change(|attempt, now| attempt.over = Some(now));
    }
}

/// Answer of the world.
enum Answer {
    Done,
    Failed(ToolError),
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Arc::new(Inner {
            schedule: FaultSchedule::from_seed(seed),
            start: Instant::now(),
            is_calm: AtomicBool::new(false),
            record: Mutex::new(SimulationRecord {
                operations: questions().collect(),
                ..SimulationRecord::default()
            }),
        }))
    }

    pub(crate) fn now(&self) -> Duration {
        self.0.start.elapsed()
    }

    pub(crate) fn record(&self) -> MutexGuard<'_, SimulationRecord> {
        self.0.record.lock()
    }

    /// Ends all faults.
    pub(crate) fn calm(&self) {
        self.0.is_calm.store(true, Ordering::Relaxed);
    }

    /// Records the arrival of an attempt and decides its fate.
    fn arrives(&self, operation: usize, cx: &CallContext) -> (AttemptPlan, AttemptGuard) {
        let at = self.now();
        let mut record = self.record();
        let earlier = record
            .attempts
            .iter()
            .filter(|attempt| attempt.operation == operation);
        let n = earlier.count() as u64;
        let course = if self.0.is_calm.load(Ordering::Relaxed) {
            AttemptPlan {
                fate: AttemptFate::Done,
                there: Duration::from_millis(1),
                back: Duration::from_millis(1),
            }
        } else {
            self.0.schedule.course(operation, n, at)
        };
        record.attempts.push(AttemptRecord {
            operation,
            at,
            number: cx.attempt,
            stands_in: cx.fallback_of.is_some(),
            is_hedge: cx.is_hedge,
            call: cx.correlation_id.0,
            is_repeatable: cx.tool().descriptor().metadata.idempotent == Some(true),
            sent: None,
            over: None,
            is_not_taken: false,
        });
        let noted = AttemptGuard {
            world: self.clone(),
            attempt: record.attempts.len() - 1,
        };
        let beside = if cx.is_hedge { " beside another" } else { "" };
        record.line(at, operation, &format!("arrives{beside}: {:?}", course.fate));
        drop(record);
        (course, noted)
    }

    /// Returns the end of an attempt, at this time.
    fn ending(&self, operation: usize, cx: &CallContext) -> AttemptEnd {
        AttemptEnd {
            operation,
            at: self.now(),
            generation: cx.tool().generation(),
        }
    }

    fn does(&self, operation: usize) {
        let at = self.now();
        let mut record = self.record();
        record.operations[operation].n_effects += 1;
        record.line(at, operation, "is done");
    }

    /// Executes an attempt that was sent, even if its caller has left.
    async fn works(self, operation: usize, course: AttemptPlan, answer: oneshot::Sender<Answer>) {
        sleep(course.there).await;
        if matches!(
            course.fate,
            AttemptFate::Done | AttemptFate::LostAfter | AttemptFate::HangsAfter
        ) {
            self.does(operation);
        }
        sleep(course.back).await;
        let failed = |kind, message| Answer::Failed(ToolError::new(kind, message));
        // The caller may be gone.
        let _ = match course.fate {
            AttemptFate::Done => answer.send(Answer::Done),
            AttemptFate::Busy => answer.send(failed(ErrorKind::Unavailable, "not now")),
            AttemptFate::Failed => answer.send(failed(ErrorKind::UpstreamError, "it failed")),
            AttemptFate::Limited(after) => {
                let error = ToolError::new(ErrorKind::RateLimited, "too often").with_retry_after(after);
                answer.send(Answer::Failed(error))
            }
            AttemptFate::HangsBefore | AttemptFate::HangsAfter => std::future::pending().await,
            // Dropping the sender breaks the connection.
            AttemptFate::LostBefore | AttemptFate::LostAfter | AttemptFate::Refused => Ok(()),
        };
    }
}

/// The executor of kind `sim`.
impl Executor for World {
    fn kind(&self) -> &'static str {
        "sim"
    }

    fn upstream(&self, _: &Descriptor) -> Option<Arc<str>> {
        Some("world".into())
    }

    fn prepare(&self, _: &Descriptor) -> std::result::Result<Arc<dyn DynBackend>, Vec<PrepareError>> {
        Ok(Arc::new(InProcess(self.clone())))
    }

    fn config_schema(&self) -> RawJson {
        RawJson::object()
    }
}

impl Invoke for World {
    async fn invoke(&self, cx: &mut CallContext) -> std::result::Result<Outcome, ToolError> {
        let operation = cx.arguments.value()["operation"].as_u64();
        let operation = operation.and_then(|operation| usize::try_from(operation).ok());
        let operation = operation.expect("the clients say which");
        let (course, noted) = self.arrives(operation, cx);
        sleep(Duration::from_millis(1)).await;
        if course.fate == AttemptFate::Refused {
            return Err(ToolError::new(ErrorKind::Unavailable, "nobody can be reached"));
        }
        cx.dispatch().sent();
        noted.change(|attempt, now| attempt.sent = Some(now));
        let (answer, answered) = oneshot::channel();
        tokio::spawn(self.clone().works(operation, course, answer));
        match answered.await {
            Ok(Answer::Done) => {
                cx.dispatch().answered();
                let ending = self.ending(operation, cx);
                let mut record = self.record();
                let answer = record.answers.len() as u64;
                record.answers.push(ending);
                Ok(Reply::value(RawJson::from(answer)).into())
            }
            Ok(Answer::Failed(error)) => {
                if error.kind() == ErrorKind::UpstreamError {
                    cx.dispatch().answered();
                } else {
                    cx.dispatch().not_taken();
                    noted.change(|attempt, _| attempt.is_not_taken = true);
                }
                Err(error)
            }
            Err(_) => {
                let ending = self.ending(operation, cx);
                self.record().losses.push(ending);
                Err(cx.unanswered(ErrorKind::Unavailable, "the connection broke"))
            }
        }
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}
