//! Steps of a call of a tool whose API may go on to work: it begins an operation, asks for its status, reads its end.

use std::{borrow::Cow, collections::HashMap, sync::Arc, time::Duration};

use http::{
    HeaderMap, StatusCode,
    header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER},
};
use raw_json::RawJson;
use tokio::{task::spawn_blocking, time::Instant};
use tool_core::{
    Arguments, Backend, CallContext, Dispatch, ErrorKind, Outcome, Reference, Refresh, RetryAfter, Secret,
    ToolError, retry_after,
};
use url::Url;

use super::{
    Callback, Operation, OperationPlan, operations::OperationKey, plan::Progress, running::Answer,
    task::task_handle, with_callback_url,
};
use crate::{
    call::{HttpBackend, MAX_INLINE_SEARCH},
    request::Request,
    response::{Failure, error_response, failed_work, refuses_credentials, with_unknown_outcome},
    template::Scope,
};

/// Answer to a tool's own request.
pub(crate) struct FirstAnswer<'a> {
    pub status: StatusCode,
    /// URL that gave it, after redirects.
    pub url: Url,
    pub headers: HeaderMap,
    /// Body, before anything in it is hidden.
    pub whole: &'a RawJson,
    pub values: &'a HashMap<Reference, Secret>,
}

impl HttpBackend {
    /// Takes the operation that the same call began before, if nobody waits for it.
    pub(crate) fn parked_operation(&self, cx: &CallContext) -> Option<Operation> {
        self.plan.operation.as_ref()?;
        self.operations.take(&OperationKey::for_call(cx))
    }

    /// Goes on with an operation, as a task or by waiting for it.
    pub(crate) async fn go_on(
        &self,
        cx: &CallContext,
        operation: Operation,
        start: Instant,
    ) -> Result<Outcome, ToolError> {
        match (&cx.extras.task, self.this.upgrade()) {
            (Some(mode), Some(this)) => {
                cx.dispatch().answered();
                let handle = task_handle(this, mode, operation, cx.clock.wall());
                Ok(Outcome::Task(Box::new(handle)))
            }
            _ => self.wait_for(cx, operation, start).await,
        }
    }

    /// Returns the operation that the first answer begins, or `None` if the answer is the result.
    ///
    /// # Errors
    /// If the answer says that the work failed, or does not say where its status is.
    pub(crate) async fn begin_operation(
        &self,
        cx: &CallContext,
        plan: &OperationPlan,
        first: FirstAnswer<'_>,
        callback: Option<Callback>,
    ) -> Result<Option<Operation>, ToolError> {
        match self.progress(first.status, first.whole, true).await {
            Ok(Progress::Done) => return Ok(None),
            Ok(Progress::Working) => {}
            Ok(Progress::Failed) => {
                cx.dispatch().answered();
                return Err(self.failed_work(cx, first.whole).await);
            }
            Err(error) => return Err(with_unknown_outcome(error, cx)),
        }
        let callback_url = callback.as_ref().map(|callback| &callback.url);
        let arguments = with_callback_url(&cx.arguments, callback_url);
        let scope = Scope {
            arguments: &arguments,
            values: first.values,
        };
        let url = plan
            .status_url(&first.url, &first.headers, first.whole, &scope)
            .map_err(|error| with_unknown_outcome(error, cx))?;
        let pause = pause(&first.headers, cx);
        Ok(Some(Operation::new(cx, plan, url, callback, pause)))
    }

    /// Asks for the status of an operation, once more with other credentials if those were refused.
    pub(crate) async fn ask_status(
        &self,
        cx: &CallContext,
        url: Url,
        (arguments, callback_url): (&Arguments, Option<&Url>),
    ) -> Result<Answer, Failure> {
        let arguments = with_callback_url(arguments, callback_url);
        match self.ask_status_once(cx, url.clone(), &arguments).await {
            Err(Failure::Known(error))
                if error.kind() == ErrorKind::Auth && self.refresh_credentials(Refresh::Force).await =>
            {
                self.ask_status_once(cx, url, &arguments).await
            }
            answered => answered,
        }
    }

    async fn ask_status_once(
        &self,
        cx: &CallContext,
        url: Url,
        arguments: &[(Cow<'_, str>, RawJson)],
    ) -> Result<Answer, Failure> {
        let plan = &*self.plan;
        let values = self.values().await?;
        let masks = self.masks.for_values(&values, &plan.secrets);
        let hidden = plan.hidden_fields(cx.tool().settings().redacted_fields());
        let scope = Scope {
            arguments,
            values: &values,
        };
        let mut headers = plan.headers(&scope)?;
        headers.remove(CONTENT_TYPE);
        headers.remove(CONTENT_LENGTH);
        let mut request = Request {
            method: http::Method::GET,
            url,
            headers,
            body: None,
        };
        if let Some(trace) = &cx.trace {
            request.set_trace(trace);
        }
        let _running = self.traffic.begin();
        // A request for the status says nothing about the tool's own request.
        let dispatch = Arc::new(Dispatch::default());
        let asked = async {
            let (response, _) = self.follow(request, cx, &dispatch).await?;
            let status = response.status();
            if !plan.expected.contains(status) {
                if refuses_credentials(status) {
                    *self.refused() = Some(self.digest(&values));
                }
                return Err(error_response(response, &hidden, &masks, cx.clock.wall())
                    .await
                    .into());
            }
            let retry_after = pause(response.headers(), cx);
            let whole = self.whole(response, None, &dispatch, (&masks, &hidden)).await??;
            Ok(Answer {
                status,
                whole,
                retry_after,
            })
        };
        // Shorter than an attempt, which reports between two requests keep alive.
        let limit = plan.timeout.min(cx.tool().settings().attempt_timeout / 2);
        tokio::time::timeout(limit, asked).await.unwrap_or_else(|_| {
            let message = "the upstream did not say the status in time".to_owned();
            Err(Failure::Unanswered(ErrorKind::Timeout, message, None))
        })
    }

    /// Says what an answer says about the work. Large answers are searched on a thread for blocking work.
    pub(crate) async fn progress(
        &self,
        status: StatusCode,
        whole: &RawJson,
        is_first: bool,
    ) -> Result<Progress, ToolError> {
        let judge = |plan: &OperationPlan, whole: &RawJson| plan.progress(status, whole, is_first);
        let Some(operation) = &self.plan.operation else {
            return Ok(Progress::Done);
        };
        if whole.len() <= MAX_INLINE_SEARCH {
            return judge(operation, whole);
        }
        let (plan, whole) = (Arc::clone(&self.plan), whole.clone());
        let judged = spawn_blocking(move || match &plan.operation {
            Some(operation) => operation.progress(status, &whole, is_first),
            None => Ok(Progress::Done),
        });
        judged.await.unwrap_or_else(|error| {
            Err(ToolError::new(ErrorKind::Internal, "searching the answer failed").with_source(error))
        })
    }

    /// Returns the result in the last answer of an operation.
    pub(crate) async fn result_of(&self, cx: &CallContext, whole: RawJson) -> Result<RawJson, ToolError> {
        let values = self.values().await?;
        let masks = self.masks.for_values(&values, &self.plan.secrets);
        let hidden = self.plan.hidden_fields(cx.tool().settings().redacted_fields());
        self.result(whole, &masks, &hidden).await
    }

    /// Returns the error of work that failed, as its last answer says.
    pub(crate) async fn failed_work(&self, cx: &CallContext, whole: &RawJson) -> ToolError {
        let values = match self.values().await {
            Ok(values) => values,
            Err(error) => return error,
        };
        let masks = self.masks.for_values(&values, &self.plan.secrets);
        let hidden = self.plan.hidden_fields(cx.tool().settings().redacted_fields());
        failed_work(whole, &hidden, &masks)
    }
}

/// Returns the time that an answer wants to pass before the next request.
fn pause(headers: &HeaderMap, cx: &CallContext) -> Option<Duration> {
    let header = headers.get(RETRY_AFTER)?.to_str().ok()?;
    match retry_after(header, cx.clock.wall())? {
        RetryAfter::In(pause) => Some(pause),
        RetryAfter::Never => None,
    }
}
