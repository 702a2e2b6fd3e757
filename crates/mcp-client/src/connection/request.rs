use std::{borrow::Cow, pin::Pin};

use mcp_wire::{Era, Params, code, meta_key, method};
use raw_json::RawJson;
use tokio::time::timeout_at;

use super::{Connection, Established, Link};
use crate::{ClientError, RequestOptions, exchange::Exchange, http::HttpLink, stream::PendingCall};

/// Content of a request's `_meta`.
enum RequestMeta<'a> {
    /// The members of the connection, and nothing else.
    Connection(&'a Established),
    Custom(Cow<'a, [(&'static str, RawJson)]>),
}

/// Request whose response can be awaited.
enum PendingRequest<'a> {
    Stream(PendingCall<'a>),
    /// Boxed, because it is much larger than the other variant.
    Http(Pin<Box<dyn Future<Output = Result<RawJson, ClientError>> + Send + 'a>>),
}

impl Connection {
    /// Sends a request and waits for its result, which is the text that the server sent.
    ///
    /// # Errors
    /// Returns [`ClientErrorKind::Rpc`](crate::ClientErrorKind::Rpc) if the server responds with an error,
    /// [`ClientErrorKind::Timeout`](crate::ClientErrorKind::Timeout) if it does not respond, or another
    /// [kind](crate::ClientErrorKind). [`ClientError::was_sent`] tells whether the request may have run.
    pub async fn request(
        &self,
        method: &str,
        params: impl Into<Params>,
        options: RequestOptions,
    ) -> Result<RawJson, ClientError> {
        let mut pending = self.start_request(method, params.into(), options)?;
        pending.wait().await
    }

    /// Starts a request after the handshake.
    fn start_request<'a>(
        &'a self,
        method: &'a str,
        params: Params,
        options: RequestOptions,
    ) -> Result<PendingRequest<'a>, ClientError> {
        let modern = self
            .0
            .established
            .get()
            .filter(|opened| opened.server.era() == Era::Modern);
        let meta = modern.map(|opened| match options.modern_meta(&opened.meta) {
            Cow::Borrowed(_) => RequestMeta::Connection(opened),
            own => RequestMeta::Custom(own),
        });
        self.start(method, params, meta, options)
    }

    pub(crate) async fn request_with_meta(
        &self,
        method: &str,
        params: Option<&RawJson>,
        meta: Option<&[(&'static str, RawJson)]>,
        options: RequestOptions,
    ) -> Result<RawJson, ClientError> {
        let meta = meta.map(|meta| RequestMeta::Custom(Cow::Borrowed(meta)));
        let mut pending = self.start(method, params.cloned().into(), meta, options)?;
        pending.wait().await
    }

    /// Starts a request. Not async, so that the caller's future only stores what it awaits.
    fn start<'a>(
        &'a self,
        method: &'a str,
        mut params: Params,
        meta: Option<RequestMeta<'_>>,
        options: RequestOptions,
    ) -> Result<PendingRequest<'a>, ClientError> {
        let is_modern = meta.is_some();
        if let Some(meta) = meta {
            meta.add_to(&mut params);
        }
        match &self.0.link {
            Link::Stream(link) => {
                let id = link.next_id();
                let params = with_progress_token(id, &params, &options);
                let call = link.start_call(id, method, &params, options)?;
                Ok(PendingRequest::Stream(call))
            }
            Link::Http(link) => {
                let call = self.request_over_http(link, method, params, is_modern, options);
                Ok(PendingRequest::Http(Box::pin(call)))
            }
        }
    }

    /// Sends a request over HTTP. Modern servers require headers that mirror arguments of a tool, as declared by the
    /// list of tools. A server that misses one has not run the tool, so the list is read again and the call is sent
    /// once more.
    async fn request_over_http(
        &self,
        link: &HttpLink,
        method: &str,
        params: Params,
        is_modern: bool,
        options: RequestOptions,
    ) -> Result<RawJson, ClientError> {
        let exchange = Exchange::new(options);
        match post(link, method, &params, &exchange).await {
            Err(error) if is_modern && method == method::TOOLS_CALL && is_header_mismatch(&error) => {
                // Boxed: rare, and the future of every call would have to reserve room for it.
                let again = async {
                    // The server has examined the headers only.
                    exchange.mark_unsent();
                    match timeout_at(exchange.deadline(), self.list_tools()).await {
                        Ok(Ok(_)) => {}
                        Ok(Err(_)) => return Err(error),
                        Err(_) => return Err(exchange.timed_out()),
                    }
                    post(link, method, &params, &exchange).await
                };
                Box::pin(again).await
            }
            done => done,
        }
    }

    /// Sends a notification. Returns when it is queued, or over HTTP when the server has accepted it.
    ///
    /// # Errors
    /// Returns an error if the connection is closed or the server refuses the notification.
    pub async fn notify(&self, method: &str, params: Option<&RawJson>) -> Result<(), ClientError> {
        match &self.0.link {
            Link::Stream(link) => link.notify(method, params).await,
            Link::Http(link) => link.notify(method, params).await,
        }
    }
}

impl PendingRequest<'_> {
    async fn wait(&mut self) -> Result<RawJson, ClientError> {
        match self {
            Self::Stream(call) => call.wait().await,
            Self::Http(call) => call.await,
        }
    }
}

async fn post(
    link: &HttpLink,
    method: &str,
    params: &Params,
    exchange: &Exchange,
) -> Result<RawJson, ClientError> {
    let id = link.next_id();
    let params = with_progress_token(id, params, exchange.options());
    link.request(id, method, &params, exchange).await
}

/// Adds a progress token to the params if the caller wants progress.
fn with_progress_token<'a>(id: u64, params: &'a Params, options: &RequestOptions) -> Cow<'a, Params> {
    let mut params = Cow::Borrowed(params);
    if options.on_progress.is_some() {
        let token = [(meta_key::PROGRESS_TOKEN, RawJson::from(id))];
        params.to_mut().add_to_meta(&token);
    }
    params
}

impl RequestMeta<'_> {
    /// Adds the members to `_meta` of the params.
    fn add_to(&self, params: &mut Params) {
        match self {
            Self::Connection(opened) => params.add_object_to_meta(&opened.meta_object),
            Self::Custom(members) => params.add_to_meta(members),
        }
    }
}

/// `true` if a modern server missed a header that mirrors an argument.
fn is_header_mismatch(error: &ClientError) -> bool {
    error
        .as_rpc()
        .is_some_and(|error| error.code == code::HEADER_MISMATCH)
}
