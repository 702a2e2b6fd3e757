use std::{fmt, future::Future, io, sync::Arc};

use mcp_server::ServerIdentity;
use mcp_wire::Era;
use raw_json::RawJson;
use tokio::{
    io::{AsyncRead, AsyncWrite, DuplexStream, duplex, split},
    net::TcpListener,
};

use crate::{
    MockHttp, MockPrompt, MockReply, MockResource, MockTool, ReceivedMessage, http,
    log::{Log, is_call},
    offer::{Kind, Offer},
    script::Script,
    state::State,
    stdio,
};

/// A mock MCP server: everything that it offers, how it answers, and what it was asked.
///
/// A clone is the same server. It serves any number of clients at once, over byte streams and over HTTP; what they ask
/// is counted together.
///
/// ```
/// use mcp_client::{Connection, ConnectionOptions, RequestOptions};
/// use mcp_mock::{MockServer, Reply, Tool};
/// use raw_json::RawJson;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = MockServer::builder()
///     .tool(Tool::new("greet").reply(Reply::template("Hello, {{ name }}!")))
///     .build();
/// let (reader, writer) = tokio::io::split(server.connect());
/// let connection = Connection::over(reader, writer, ConnectionOptions::default()).await?;
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

/// How much may be on its way to a client in the same process.
const BUFFER: usize = 64 * 1024;

impl MockServer {
    /// Begins with a server that offers nothing.
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
            // A client that is gone takes its connection with it.
            let _ = stdio::serve(state, reader, writer, std::future::pending()).await;
        });
        theirs
    }

    /// Serves one client over byte streams such as stdin and stdout until its input ends, `shutdown` comes, or the
    /// script closes the connection.
    ///
    /// # Errors
    /// When the streams cannot be read or written.
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

    /// Listens on a free port of this machine, until what is returned is dropped.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn http(&self) -> io::Result<MockHttp> {
        MockHttp::start(Arc::clone(&self.0)).await
    }

    /// Serves clients over HTTP on a listener, at the path `/mcp`, until `shutdown` comes.
    ///
    /// # Errors
    /// When the listener fails.
    pub async fn serve_http(
        &self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        http::serve(Arc::clone(&self.0), listener, shutdown).await
    }

    /// The calls of a tool so far, oldest first. Each round of a modern call that asks for input is one of them.
    #[must_use]
    pub fn calls(&self, tool: &str) -> Vec<ReceivedMessage> {
        self.0.log.matching(|received| is_call(received, tool))
    }

    /// The requests and notifications of a method so far, oldest first.
    #[must_use]
    pub fn requests(&self, method: &str) -> Vec<ReceivedMessage> {
        self.0.log.matching(|received| received.method == method)
    }

    /// All that was received so far, oldest first: the newest 16,384 messages are kept.
    #[must_use]
    pub fn received(&self) -> Vec<ReceivedMessage> {
        self.0.log.matching(|_| true)
    }

    /// Waits until a tool was called so often, and returns its calls. It waits forever for calls that never come: put
    /// a timeout around it.
    pub async fn wait_for_calls(&self, tool: &str, count: usize) -> Vec<ReceivedMessage> {
        self.0.log.wait(count, |received| is_call(received, tool)).await
    }

    /// Waits until so many requests or notifications of a method have come, such as `notifications/cancelled`.
    pub async fn wait_for_requests(&self, method: &str, count: usize) -> Vec<ReceivedMessage> {
        self.0.log.wait(count, |received| received.method == method).await
    }

    /// Forgets what was received.
    pub fn clear(&self) {
        self.0.log.clear();
    }

    /// Adds a tool, or replaces the one of the same name, and tells those who listen.
    pub fn add_tool(&self, tool: MockTool) {
        self.0.put(tool.into());
    }

    /// Takes a tool away and tells those who listen.
    pub fn remove_tool(&self, name: &str) {
        self.0.remove(&[Kind::Tool], name);
    }

    /// Adds a prompt, or replaces the one of the same name, and tells those who listen.
    pub fn add_prompt(&self, prompt: MockPrompt) {
        self.0.put(prompt.into());
    }

    /// Takes a prompt away and tells those who listen.
    pub fn remove_prompt(&self, name: &str) {
        self.0.remove(&[Kind::Prompt], name);
    }

    /// Adds a resource or a template, or replaces the one of the same URI, and tells those who listen.
    pub fn add_resource(&self, resource: MockResource) {
        self.0.put(resource.into());
    }

    /// Takes a resource or a template away and tells those who listen.
    pub fn remove_resource(&self, uri: &str) {
        self.0.remove(&[Kind::Resource, Kind::Template], uri);
    }

    /// Tells those who watch a resource that it has changed.
    pub fn update_resource(&self, uri: &str) {
        self.0.update_resource(uri);
    }

    /// Sends a notification to every client that listens to such.
    pub fn notify(&self, method: &str, params: Option<&RawJson>) {
        self.0.notices.send(method, params);
    }

    /// Gives a tool other replies, from the first one. A tool that there is not is added.
    pub fn set_replies(&self, tool: &str, replies: impl IntoIterator<Item = MockReply>) {
        let replies = replies.into_iter().collect();
        if let Err(replies) = self.0.offer.set_replies(tool, replies) {
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

/// Makes a [`MockServer`].
#[derive(Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct MockServerBuilder {
    info: ServerIdentity,
    era: Option<Era>,
    page_size: Option<usize>,
    capabilities: Option<RawJson>,
    rules: Vec<(String, Vec<MockReply>)>,
    offer: Offer,
}

impl Default for MockServerBuilder {
    fn default() -> Self {
        Self {
            info: ServerIdentity::new("mock", env!("CARGO_PKG_VERSION")),
            era: None,
            page_size: None,
            capabilities: None,
            rules: Vec::new(),
            offer: Offer::default(),
        }
    }
}

impl MockServerBuilder {
    /// Sets what the server says of itself.
    pub fn info(mut self, info: ServerIdentity) -> Self {
        self.info = info;
        self
    }

    /// Lets the server speak one era only; without this it speaks both.
    pub fn era(mut self, era: Era) -> Self {
        self.era = Some(era);
        self
    }

    /// Lists so many entries on a page.
    pub fn page_size(mut self, entries: usize) -> Self {
        self.page_size = Some(entries.max(1));
        self
    }

    /// Declares these capabilities, whatever is offered.
    pub fn capabilities(mut self, capabilities: RawJson) -> Self {
        self.capabilities = Some(capabilities);
        self
    }

    /// Adds a tool.
    pub fn tool(self, tool: MockTool) -> Self {
        self.offer.put(tool.into());
        self
    }

    /// Adds a prompt.
    pub fn prompt(self, prompt: MockPrompt) -> Self {
        self.offer.put(prompt.into());
        self
    }

    /// Adds a resource or a template of resources.
    pub fn resource(self, resource: MockResource) -> Self {
        self.offer.put(resource.into());
        self
    }

    /// Adds the reply to the next request of a method, whatever it is about, such as `initialize` or `tools/list`; the
    /// last one answers all that follow.
    ///
    /// What is scripted for a tool, a prompt or a resource comes behind it: the steps and misbehaviours of both count,
    /// and the outcome is this reply's unless it is [`MockReply::usual`]. Of the protocol's own housekeeping (`initialize`,
    /// `server/discover`, `ping`, `logging/setLevel`) the delays, the results, the errors and the misbehaviours count.
    ///
    /// The method of a notification that the server sends, such as `notifications/tools/list_changed`, and `GET` for the
    /// stream on which a legacy client listens, take replies as well: see [`Misbehavior`](crate::Misbehaviour).
    pub fn on(mut self, method: impl Into<String>, reply: MockReply) -> Self {
        let method = method.into();
        match self.rules.iter_mut().find(|(name, _)| *name == method) {
            Some((_, replies)) => replies.push(reply),
            None => self.rules.push((method, vec![reply])),
        }
        self
    }

    /// The server.
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
            offer: self.offer,
            log: Log::default(),
            notices: mcp_server::Notifier::default(),
        }))
    }
}
