use std::{fmt, future::Future, io, sync::Arc, time::Duration};

use mcp_server::ServerIdentity;
use mcp_wire::Era;
use raw_json::RawJson;
use tokio::{
    io::{AsyncRead, AsyncWrite, DuplexStream, duplex, split},
    net::TcpListener,
    time::timeout,
};

use crate::{
    MockHttp, MockPrompt, MockReply, MockResource, MockTool, ReceivedMessage,
    reply::script::Script,
    server::{
        catalog::{Catalog, FeatureKind},
        message_log::{MessageLog, is_call},
        state::State,
        too_few_calls::{TooFewCalls, summary, times},
    },
    transport::{http, stdio},
};

/// A mock MCP server: its features, their scripts, and the received messages.
///
/// Clones share one server. It serves any number of clients at once, over byte streams and over HTTP; their requests
/// are counted together.
///
/// # Examples
///
/// ```
/// use mcp_client::{Connection, ConnectionOptions, RequestOptions};
/// use mcp_mock::{MockReply, MockServer, MockTool};
/// use raw_json::RawJson;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = MockServer::builder()
///     .tool(MockTool::new("greet").reply(MockReply::template("Hello, {{ name }}!")))
///     .build();
/// let (reader, writer) = tokio::io::split(server.connect());
/// let connection = Connection::from_streams(reader, writer, ConnectionOptions::default()).await?;
///
/// let call = RawJson::parse(r#"{"name":"greet","arguments":{"name":"Ada"}}"#)?;
/// let result = connection.request("tools/call", Some(call), RequestOptions::default()).await?;
/// assert!(result.as_str().contains("Hello, Ada!"));
/// assert_eq!(server.calls("greet")[0].arguments().as_str(), r#"{"name":"Ada"}"#);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct MockServer(Arc<State>);

/// Size of the buffer of a connection in the same process, in bytes.
const BUFFER: usize = 64 * 1024;

impl MockServer {
    /// Returns a builder of a server without features.
    pub fn builder() -> MockServerBuilder {
        MockServerBuilder::default()
    }

    /// Opens a connection for a client in the same process, framed like stdio. Needs a runtime; the connection ends
    /// when the client drops its end.
    #[must_use]
    pub fn connect(&self) -> DuplexStream {
        let (ours, theirs) = duplex(BUFFER);
        let state = Arc::clone(&self.0);
        tokio::spawn(async move {
            let (reader, writer) = split(ours);
            // An error means that the client is gone, which ends the connection.
            let _ = stdio::serve(state, reader, writer, std::future::pending()).await;
        });
        theirs
    }

    /// Serves one client over byte streams such as stdin and stdout until its input ends, `shutdown` completes, or the
    /// script closes the connection.
    ///
    /// # Cancellation
    /// When the future is dropped, the connection ends and its requests are cancelled.
    ///
    /// # Errors
    /// If the streams cannot be read or written.
    pub async fn serve_stdio<R, W>(
        &self,
        reader: R,
        writer: W,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        stdio::serve(Arc::clone(&self.0), reader, writer, shutdown).await
    }

    /// Listens on a free port of this machine until the returned value is dropped.
    ///
    /// # Cancellation
    /// When the future is dropped, nothing listens.
    ///
    /// # Errors
    /// If no port is free.
    pub async fn http(&self) -> io::Result<MockHttp> {
        MockHttp::start(Arc::clone(&self.0)).await
    }

    /// Serves clients over HTTP on a listener, at the path `/mcp`, until `shutdown` completes.
    ///
    /// # Cancellation
    /// When the future is dropped, the listener is closed and all connections are cut off.
    ///
    /// # Errors
    /// If the listener fails.
    pub async fn serve_http(
        &self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        http::serve(Arc::clone(&self.0), listener, shutdown).await
    }

    /// Returns the calls of a tool so far, oldest first. Each round of a modern call that asks for input is a call.
    #[must_use]
    pub fn calls(&self, tool: &str) -> Vec<ReceivedMessage> {
        self.0.log.matching(|received| is_call(received, tool))
    }

    /// Returns the requests and notifications of a method so far, oldest first.
    #[must_use]
    pub fn requests(&self, method: &str) -> Vec<ReceivedMessage> {
        self.0.log.matching(|received| received.method == method)
    }

    /// Returns all messages received so far, oldest first. The newest 16,384 are kept.
    #[must_use]
    pub fn received(&self) -> Vec<ReceivedMessage> {
        self.0.log.matching(|_| true)
    }

    /// Waits for this many calls of a tool and returns them. Waits forever if they never come: see
    /// [`wait_for_calls_within`](Self::wait_for_calls_within).
    ///
    /// # Cancellation
    /// Dropping the future has no effect: the messages stay in the log.
    pub async fn wait_for_calls(&self, tool: &str, count: usize) -> Vec<ReceivedMessage> {
        self.0.log.wait(count, |received| is_call(received, tool)).await
    }

    /// Waits for this many calls of a tool, for at most `limit`, and returns them.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use mcp_mock::{MockServer, MockTool};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let server = MockServer::builder().tool(MockTool::new("forecast")).build();
    /// let late = server.wait_for_calls_within("forecast", 1, Duration::from_millis(10)).await;
    /// let expected = "`forecast` was called 0 times within 10ms, not 1; received: nothing";
    /// assert_eq!(late.unwrap_err().to_string(), expected);
    /// # }
    /// ```
    ///
    /// # Cancellation
    /// Dropping the future has no effect: the messages stay in the log.
    ///
    /// # Errors
    /// If there are fewer calls at the end of that time. The error lists the messages that came instead.
    pub async fn wait_for_calls_within(
        &self,
        tool: &str,
        count: usize,
        limit: Duration,
    ) -> Result<Vec<ReceivedMessage>, TooFewCalls> {
        let calls = timeout(limit, self.wait_for_calls(tool, count)).await;
        calls.map_err(|_| TooFewCalls::new(tool, count, limit, &self.received()))
    }

    /// Checks that a tool was called this many times so far.
    ///
    /// # Examples
    ///
    /// ```
    /// use mcp_mock::{MockServer, MockTool};
    ///
    /// let server = MockServer::builder().tool(MockTool::new("forecast")).build();
    /// server.assert_called("forecast", 0);
    /// ```
    ///
    /// # Panics
    /// If it was called more or less often. The message lists what the server has received.
    #[track_caller]
    pub fn assert_called(&self, tool: &str, count: usize) {
        let n_calls = self.calls(tool).len();
        assert!(
            n_calls == count,
            "`{tool}` was called {}, not {count}; received: {}",
            times(n_calls),
            summary(&self.received())
        );
    }

    /// Waits for this many requests or notifications of a method, such as `notifications/cancelled`. Waits forever if they
    /// never come.
    ///
    /// # Cancellation
    /// Dropping the future has no effect: the messages stay in the log.
    pub async fn wait_for_requests(&self, method: &str, count: usize) -> Vec<ReceivedMessage> {
        self.0.log.wait(count, |received| received.method == method).await
    }

    /// Clears the log of received messages.
    pub fn clear(&self) {
        self.0.log.clear();
    }

    /// Adds a tool, or replaces the one of the same name, and notifies subscribers.
    pub fn add_tool(&self, tool: MockTool) {
        self.0.put(tool.into());
    }

    /// Removes a tool and notifies subscribers.
    pub fn remove_tool(&self, name: &str) {
        self.0.remove(&[FeatureKind::Tool], name);
    }

    /// Adds a prompt, or replaces the one of the same name, and notifies subscribers.
    pub fn add_prompt(&self, prompt: MockPrompt) {
        self.0.put(prompt.into());
    }

    /// Removes a prompt and notifies subscribers.
    pub fn remove_prompt(&self, name: &str) {
        self.0.remove(&[FeatureKind::Prompt], name);
    }

    /// Adds a resource or a template, or replaces the one of the same URI, and notifies subscribers.
    pub fn add_resource(&self, resource: MockResource) {
        self.0.put(resource.into());
    }

    /// Removes a resource or a template and notifies subscribers.
    pub fn remove_resource(&self, uri: &str) {
        self.0
            .remove(&[FeatureKind::Resource, FeatureKind::Template], uri);
    }

    /// Notifies the subscribers of a resource that it has changed.
    pub fn update_resource(&self, uri: &str) {
        self.0.update_resource(uri);
    }

    /// Sends a notification to every subscribed client.
    pub fn notify(&self, method: &str, params: Option<&RawJson>) {
        self.0.notices.send(method, params);
    }

    /// Gives a tool other replies, from the first one. Adds the tool if it does not exist.
    pub fn set_replies(&self, tool: &str, replies: impl IntoIterator<Item = MockReply>) {
        let replies = replies.into_iter().collect();
        if let Err(replies) = self.0.catalog.set_replies(tool, replies) {
            self.add_tool(replies.into_iter().fold(MockTool::new(tool), MockTool::reply));
        }
    }
}

impl fmt::Debug for MockServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MockServer")
            .field("name", &self.0.info.name)
            .finish_non_exhaustive()
    }
}

/// Builder of a [`MockServer`].
#[derive(Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct MockServerBuilder {
    info: ServerIdentity,
    era: Option<Era>,
    page_size: Option<usize>,
    capabilities: Option<RawJson>,
    rules: Vec<(String, Vec<MockReply>)>,
    catalog: Catalog,
}

impl Default for MockServerBuilder {
    fn default() -> Self {
        Self {
            info: ServerIdentity::new("mock", env!("CARGO_PKG_VERSION")),
            era: None,
            page_size: None,
            capabilities: None,
            rules: Vec::new(),
            catalog: Catalog::default(),
        }
    }
}

impl MockServerBuilder {
    /// Sets the identity and instructions of the server.
    pub fn info(mut self, info: ServerIdentity) -> Self {
        self.info = info;
        self
    }

    /// Restricts the server to one era; by default it speaks both.
    pub fn era(mut self, era: Era) -> Self {
        self.era = Some(era);
        self
    }

    /// Sets the number of entries on a page.
    pub fn page_size(mut self, entries: usize) -> Self {
        self.page_size = Some(entries.max(1));
        self
    }

    /// Declares these capabilities, independent of the offered features.
    pub fn capabilities(mut self, capabilities: RawJson) -> Self {
        self.capabilities = Some(capabilities);
        self
    }

    /// Adds a tool.
    pub fn tool(self, tool: MockTool) -> Self {
        self.catalog.put(tool.into());
        self
    }

    /// Adds a prompt.
    pub fn prompt(self, prompt: MockPrompt) -> Self {
        self.catalog.put(prompt.into());
        self
    }

    /// Adds a resource or a template of resources.
    pub fn resource(self, resource: MockResource) -> Self {
        self.catalog.put(resource.into());
        self
    }

    /// Adds the reply to the next request of a method, for any feature, such as `initialize` or `tools/list`; the last
    /// one is repeated.
    ///
    /// Replies of a tool, a prompt or a resource are applied after it: the steps and misbehaviors of both apply, and
    /// the outcome is this reply's unless it is [`MockReply::usual`]. For the protocol's housekeeping (`initialize`,
    /// `server/discover`, `ping`, `logging/setLevel`) delays, results, errors and misbehaviors apply.
    ///
    /// The method of a notification from the server, such as `notifications/tools/list_changed`, and `GET`, for the
    /// stream of a legacy client, take replies as well: see [`Misbehavior`](crate::Misbehavior).
    pub fn on(mut self, method: impl Into<String>, reply: MockReply) -> Self {
        let method = method.into();
        match self.rules.iter_mut().find(|(name, _)| *name == method) {
            Some((_, replies)) => replies.push(reply),
            None => self.rules.push((method, vec![reply])),
        }
        self
    }

    /// Builds the server.
    #[must_use]
    pub fn build(self) -> MockServer {
        let rules = self.rules.into_iter();
        MockServer(Arc::new(State {
            info: self.info,
            era: self.era,
            page_size: self.page_size,
            capabilities: self.capabilities,
            rules: rules
                .map(|(method, replies)| (method, Script::new(replies)))
                .collect(),
            catalog: self.catalog,
            log: MessageLog::default(),
            notices: mcp_server::Notifier::default(),
        }))
    }
}
