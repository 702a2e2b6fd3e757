use std::{num::NonZeroUsize, sync::Arc};

use futures_util::{StreamExt, stream};
use serde::{Serialize, de::DeserializeOwned};
use tool_core::{CallContext, LayerDecision, Mode, Outcome, Target, Tool, ToolError, format_duration};

use crate::{CallRequest, Toolplane};

/// Result of a call, and the decisions of each layer.
#[derive(Debug)]
#[non_exhaustive]
pub struct ExplainedCall {
    /// Result of the call.
    pub result: Result<Outcome, ToolError>,
    /// Decisions of the layers, in order.
    pub decisions: Vec<LayerDecision>,
}

impl Toolplane {
    /// Makes a call.
    ///
    /// # Cancellation
    /// Dropping the future cancels the call. A backend that supports cancellation is notified.
    ///
    /// # Errors
    /// If there is no result: see [`ErrorKind`](tool_core::ErrorKind).
    ///
    /// # Examples
    /// ```
    /// # use toolplane::{CallRequest, Toolplane};
    /// # async fn example(plane: &Toolplane) -> Result<(), Box<dyn std::error::Error>> {
    /// let outcome = plane.call(CallRequest::new("weather").json(r#"{"city": "Oslo"}"#)?).await?;
    /// println!("{}", outcome.into_reply()?.text());
    /// # Ok(())
    /// # }
    /// ```
    pub fn call(&self, request: CallRequest) -> impl Future<Output = Result<Outcome, ToolError>> + Send {
        // Before any await, so that no future holds the request.
        let known = self.known_context(request);
        async move {
            self.0.start_background();
            let mut cx = match known {
                Ok(cx) => cx,
                // Boxed: rare, and the future of every call would hold it.
                Err(request) => Box::pin(self.found_context(request)).await?,
            };
            self.0.stack.invoke_boxed(&mut cx).await
        }
    }

    /// Calls a tool that no source offers. The request gives the caller and the arguments; its name is not looked up.
    pub(crate) async fn call_tool(
        &self,
        tool: &Arc<Tool>,
        request: CallRequest,
    ) -> Result<Outcome, ToolError> {
        self.0.start_background();
        let deadline = self.deadline(&request);
        let mut cx = self.context(request, Target::Tool(tool.clone()), deadline);
        self.0.stack.invoke_boxed(&mut cx).await
    }

    /// Calls a tool with typed arguments and reads its typed reply. To set a caller, a deadline or a key, use
    /// [`Toolplane::call`] with [`CallRequest::args`], [`Outcome::into_reply`] and [`Reply::json`](tool_core::Reply::json),
    /// which this does.
    ///
    /// # Cancellation
    /// Dropping the future cancels the call: see [`Toolplane::call`].
    ///
    /// # Errors
    /// The errors of the call; if its outcome is no reply, for example because it needs an approval; if the tool reports
    /// a failure in its reply (`is_error`); if `arguments` are no JSON object, or the reply is no `R`.
    ///
    /// # Examples
    /// ```
    /// # use toolplane::Toolplane;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let plane = Toolplane::from_yaml(r#"
    /// # tools:
    /// #   weather:
    /// #     description: The weather somewhere.
    /// #     executor: {kind: mock, template: '{"city": {{ city }}, "sky": "clear"}'}
    /// # "#)?;
    /// use std::collections::BTreeMap;
    ///
    /// let arguments = BTreeMap::from([("city", "Oslo")]);
    /// let weather: BTreeMap<String, String> = plane.call_json("weather", &arguments).await?;
    /// assert_eq!(weather["sky"], "clear");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn call_json<A, R>(&self, tool: impl Into<Arc<str>>, arguments: &A) -> Result<R, ToolError>
    where
        A: Serialize + ?Sized,
        R: DeserializeOwned,
    {
        let request = CallRequest::new(tool).args(arguments)?;
        self.call(request).await?.into_reply()?.json()
    }

    /// Default number of concurrent calls of one turn.
    pub const DEFAULT_CONCURRENCY: NonZeroUsize = NonZeroUsize::new(5).expect("5 is not 0");

    /// Makes the calls of one turn, at most `concurrency` at a time. Results are in the order of the requests, and
    /// each call has an error of its own. See [`Toolplane::DEFAULT_CONCURRENCY`].
    ///
    /// # Cancellation
    /// Dropping the future cancels the running calls and makes no others.
    ///
    /// # Examples
    /// ```
    /// # use toolplane::{CallRequest, Toolplane};
    /// # async fn example(plane: &Toolplane) {
    /// let requests = ["weather", "news"].map(CallRequest::new);
    /// for result in plane.call_many(requests, Toolplane::DEFAULT_CONCURRENCY).await {
    ///     println!("{result:?}");
    /// }
    /// # }
    /// ```
    pub async fn call_many(
        &self,
        requests: impl IntoIterator<Item = CallRequest>,
        concurrency: NonZeroUsize,
    ) -> Vec<Result<Outcome, ToolError>> {
        let requests: Vec<_> = requests.into_iter().collect();
        let calls = requests
            .into_iter()
            .enumerate()
            .map(|(index, request)| async move {
                // Boxed, so that each concurrent call adds a pointer to this future instead of its size.
                (index, Box::pin(self.call(request)).await)
            });
        // Not `buffered`, which starts no further call while the first of the concurrency is running.
        let mut results: Vec<_> = stream::iter(calls)
            .buffer_unordered(concurrency.get())
            .collect()
            .await;
        results.sort_by_key(|(index, _)| *index);
        results.into_iter().map(|(_, result)| result).collect()
    }

    /// Makes a call and records the decisions of each layer.
    ///
    /// # Cancellation
    /// Dropping the future cancels the call: see [`Toolplane::call`].
    pub async fn call_explained(&self, request: CallRequest) -> ExplainedCall {
        self.explained(self.known_context(request), Mode::Live).await
    }

    /// Passes a call through all layers and stops before it is sent. If every layer lets it pass, the result is
    /// [`Outcome::Pending`] with the [`Preview`](tool_core::Preview) of the request as its detail, if the backend
    /// supports it. Counts nothing and asks nobody. Starts a server only for a tool in no known list.
    ///
    /// # Cancellation
    /// Dropping the future ends the dry run, which has no effect. A server that is starting continues to start.
    pub async fn dry_run(&self, request: CallRequest) -> ExplainedCall {
        let known = match self.known_context(request) {
            Ok(cx) => Ok(cx),
            Err(request) => self.recalled_context(request).await,
        };
        self.explained(known, Mode::DryRun).await
    }

    async fn explained(&self, known: Result<Box<CallContext>, CallRequest>, mode: Mode) -> ExplainedCall {
        self.0.start_background();
        let now = || self.0.clock.now();
        let start = now();
        let (cx, is_known) = match known {
            Ok(cx) => (Ok(cx), true),
            Err(request) => (self.found_context(request).await, false),
        };
        match cx {
            Ok(mut cx) => {
                cx.mode = mode;
                cx.record_decisions();
                if !is_known {
                    let waited = now().since(start);
                    cx.explain("find", || {
                        format!(
                            "it was not known yet: servers that may have it were ready after {}",
                            format_duration(waited)
                        )
                    });
                }
                let result = self.0.stack.invoke_boxed(&mut cx).await;
                ExplainedCall {
                    result,
                    decisions: cx.decisions().to_vec(),
                }
            }
            Err(error) => ExplainedCall {
                result: Err(error),
                decisions: Vec::new(),
            },
        }
    }
}
