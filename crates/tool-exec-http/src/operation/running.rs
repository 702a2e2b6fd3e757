use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use http::StatusCode;
use raw_json::RawJson;
use tokio::time::{Instant, sleep_until};
use tool_core::{
    Arguments, CallContext, ErrorKind, Outcome, PendingCall, Progress as Reports, Reply, ToolError,
    format_duration,
};
use tracing::debug;
use url::Url;

use super::{
    Callback, Operations,
    operations::OperationKey,
    plan::{MAX_INTERVAL, MIN_INTERVAL, OperationPlan, Progress},
};
use crate::{
    call::HttpBackend,
    response::{Failure, with_unknown_outcome},
};

/// Work of an API that goes on after its first answer.
pub(crate) struct Operation {
    /// Call that began it.
    pub key: OperationKey,
    pub begun: Instant,
    /// Time at which it is given up.
    pub expires: Instant,
    /// Name for messages.
    pub handle: Arc<str>,
    /// Arguments of the call that began it, of which the headers may be made.
    pub arguments: Arc<Arguments>,
    status_url: Option<Url>,
    callback: Option<Callback>,
    interval: Duration,
    next_request: Instant,
    lifetime: Duration,
    /// Failure of the last request for the status.
    last_failure: Option<String>,
}

/// An answer of the API about the work, before anything in it is hidden.
pub(crate) struct Answer {
    pub status: StatusCode,
    pub whole: RawJson,
    /// Time after which the API wants to be asked again.
    pub retry_after: Option<Duration>,
}

/// Time before the end of a call at which it stops waiting, so that its pending outcome arrives: a tenth of its time, within
/// these limits.
const LEAD: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

impl Operation {
    /// Creates the operation that this call began.
    pub(crate) fn new(
        cx: &CallContext,
        plan: &OperationPlan,
        status_url: Option<Url>,
        callback: Option<Callback>,
        retry_after: Option<Duration>,
    ) -> Self {
        static N_BEGUN: AtomicU64 = AtomicU64::new(0);
        let n = N_BEGUN.fetch_add(1, Ordering::Relaxed) + 1;
        let now = Instant::now();
        let mut operation = Self {
            key: OperationKey::for_call(cx),
            begun: now,
            expires: now + plan.lifetime,
            handle: format!("operation-{n}").into(),
            arguments: Arc::clone(&cx.arguments),
            status_url,
            callback,
            interval: plan.interval,
            next_request: now,
            lifetime: plan.lifetime,
            last_failure: None,
        };
        operation.schedule(retry_after);
        operation
    }

    /// Time until the next request for the status.
    pub(crate) fn pause(&self) -> Duration {
        match self.status_url {
            Some(_) => self.next_request.saturating_duration_since(Instant::now()),
            None => self.interval,
        }
    }

    pub(crate) fn interval(&self) -> Duration {
        self.interval
    }

    pub(crate) fn lifetime(&self) -> Duration {
        self.lifetime
    }

    pub(crate) fn last_failure(&self) -> Option<&str> {
        self.last_failure.as_deref()
    }

    fn schedule(&mut self, retry_after: Option<Duration>) {
        let pause = retry_after.map_or(self.interval, |pause| pause.clamp(MIN_INTERVAL, MAX_INTERVAL));
        self.next_request = Instant::now() + pause;
    }

    /// Waits until there is something to do: a callback, a request for the status, or the end of the time.
    ///
    /// # Cancellation
    /// Nothing is lost.
    pub(crate) async fn ready(&mut self) {
        let next = match self.status_url {
            Some(_) => self.next_request.min(self.expires),
            None => self.expires,
        };
        let called_back = async {
            match &mut self.callback {
                Some(callback) => callback.wait().await,
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            () = called_back => {}
            () = sleep_until(next) => {}
        }
    }

    /// Does what is due. Returns the end of the work, or `None` if it goes on.
    ///
    /// # Cancellation
    /// An interrupted request for the status is made again.
    pub(crate) async fn check(
        &mut self,
        backend: &HttpBackend,
        cx: &CallContext,
    ) -> Option<Result<Reply, ToolError>> {
        if let Some(whole) = self.callback.as_mut().and_then(Callback::take) {
            let answer = Answer {
                status: StatusCode::OK,
                whole,
                retry_after: None,
            };
            return self.judge(backend, cx, answer, true).await;
        }
        let now = Instant::now();
        if now >= self.expires {
            let message = format!(
                "the upstream did not finish its work within {}",
                format_duration(self.lifetime)
            );
            return Some(Err(cx.unanswered(ErrorKind::Timeout, message)));
        }
        let url = self.status_url.clone().filter(|_| now >= self.next_request)?;
        let callback_url = self.callback.as_ref().map(|callback| &callback.url);
        let failure = match backend.ask_status(cx, url, (&self.arguments, callback_url)).await {
            Ok(answer) => {
                self.last_failure = None;
                return self.judge(backend, cx, answer, false).await;
            }
            Err(failure) => failure,
        };
        let (message, retry_after) = match failure {
            Failure::Unanswered(_, message, _) => (message, None),
            Failure::Known(error) if is_passing(&error) => (error.message().to_owned(), error.retry_after()),
            Failure::Known(error) => return Some(Err(with_unknown_outcome(error, cx))),
        };
        debug!(tool = %backend.plan.tool, "the status of an operation cannot be read: {message}");
        self.last_failure = Some(message);
        self.schedule(retry_after);
        None
    }

    async fn judge(
        &mut self,
        backend: &HttpBackend,
        cx: &CallContext,
        answer: Answer,
        is_last: bool,
    ) -> Option<Result<Reply, ToolError>> {
        let ended = match backend.progress(answer.status, &answer.whole, false).await {
            // A callback is the last answer, whatever it says: there is no other one.
            Ok(Progress::Working) if !is_last => {
                self.schedule(answer.retry_after);
                return None;
            }
            Ok(Progress::Working | Progress::Done) => {
                backend.result_of(cx, answer.whole).await.map(Reply::value)
            }
            Ok(Progress::Failed) => Err(backend.failed_work(cx, &answer.whole).await),
            Err(error) => Err(error),
        };
        cx.dispatch().answered();
        Some(ended)
    }

    /// Waits for the end of the work. Reports at least every `report_interval` that it goes on, so that no limit takes it for
    /// stuck.
    async fn finish(
        &mut self,
        backend: &HttpBackend,
        cx: &CallContext,
        report_interval: Duration,
    ) -> Result<Reply, ToolError> {
        let reports = cx.origin.progress.clone();
        let mut n_reports = 0_u64;
        loop {
            tokio::select! {
                biased;
                () = self.ready() => {
                    if let Some(ended) = self.check(backend, cx).await {
                        return ended;
                    }
                }
                () = tokio::time::sleep(report_interval), if reports.is_some() => {}
            }
            if let Some(reports) = &reports {
                n_reports += 1;
                self.report(&**reports, n_reports);
            }
        }
    }

    fn report(&self, reports: &dyn Reports, n: u64) {
        let elapsed = format_duration(Duration::from_secs(self.begun.elapsed().as_secs()));
        let message = match &self.last_failure {
            Some(failure) => {
                format!("the upstream has worked for {elapsed}; its status is unknown: {failure}")
            }
            None => format!("the upstream has worked for {elapsed}"),
        };
        reports.report(RawJson::from_members(&[
            ("progress", RawJson::from(n)),
            ("message", RawJson::from(message.as_str())),
        ]));
    }

    /// Returns the outcome of a call that does not wait any longer.
    fn pending(&self) -> Outcome {
        let pause = self.pause().max(Duration::from_secs(1));
        let pending = PendingCall::new(Arc::clone(&self.handle), "the result of the tool's work");
        Outcome::Pending(Box::new(pending.with_retry_after(pause)))
    }
}

/// Returns `true` if a request for the status that failed like this may succeed later.
fn is_passing(error: &ToolError) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Unavailable | ErrorKind::RateLimited | ErrorKind::UpstreamError | ErrorKind::Timeout
    )
}

impl HttpBackend {
    /// Waits for an operation, as long as the call may take: see [the table of this module](super).
    pub(crate) async fn wait_for(
        &self,
        cx: &CallContext,
        operation: Operation,
        start: Instant,
    ) -> Result<Outcome, ToolError> {
        // Also if it began in an earlier call: the tool runs.
        cx.dispatch().sent();
        let mut parking = Parking {
            operations: &self.operations,
            operation: Some(operation),
        };
        let attempt = cx.tool().settings().attempt_timeout;
        // A report restarts the limit of the attempt.
        let attempt_limit = cx.origin.progress.is_none().then_some(start + attempt);
        let deadline = cx.remaining().map(|left| Instant::now() + left);
        let end = [attempt_limit, deadline].into_iter().flatten().min();
        let operation = parking.operation.as_mut().expect("it was just put in");
        let ended = tokio::select! {
            biased;
            ended = operation.finish(self, cx, attempt / 3) => Some(ended),
            () = until(end.map(|end| end - lead(end - start))) => None,
        };
        match ended {
            Some(ended) => {
                parking.operation = None;
                ended.map(Outcome::from)
            }
            None => Ok(operation.pending()),
        }
    }
}

/// Returns the time before the end of a call at which it stops waiting.
fn lead(whole: Duration) -> Duration {
    (whole / 10).clamp(LEAD.0, LEAD.1).min(whole)
}

async fn until(end: Option<Instant>) {
    match end {
        Some(end) => sleep_until(end).await,
        None => pending().await,
    }
}

/// Parks an operation whose call does not wait for it any more, also one that was dropped.
struct Parking<'a> {
    operations: &'a Operations,
    operation: Option<Operation>,
}

impl Drop for Parking<'_> {
    fn drop(&mut self) {
        if let Some(operation) = self.operation.take() {
            self.operations.park(operation);
        }
    }
}
