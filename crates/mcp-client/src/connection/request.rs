use std::borrow::Cow;
#[cfg(feature = "http")]
use std::pin::Pin;

use mcp_wire::{Era, Params, meta_key};
use raw_json::RawJson;

use super::{Connection, Established, Link};
use crate::{ClientError, RequestOptions, stream::PendingCall};

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
    #[cfg(feature = "http")]
    Http(Pin<Box<dyn Future<Output = Result<RawJson, ClientError>> + Send + 'a>>),
}

impl Connection {
    /// Sends a request and waits for its result, which is the text that the server sent.
    ///
    /// A result that asks for input (`input_required` of a modern server) is returned like any other.
    /// [`request_with_input`](Self::request_with_input) provides the input and goes on, and so does
    /// [`call_tool`](Self::call_tool).
    ///
    /// # Cancellation
    /// Dropping the future cancels the request: nothing waits for it any longer, and the server is notified if it may
    /// have received it. Whether it ran is then unknown.
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
        #[cfg(feature = "http")]
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
            #[cfg(feature = "http")]
            Link::Http(link) => {
                let call = self.request_over_http(link, method, params, is_modern, options);
                Ok(PendingRequest::Http(Box::pin(call)))
            }
        }
    }

    /// Sends a notification. Returns when it is queued, or over HTTP when the server has accepted it.
    ///
    /// # Errors
    /// Returns an error if the connection is closed or the server refuses the notification.
    ///
    /// # Cancellation
    /// If the future is dropped before it is ready, the notification may have been sent or not.
    pub async fn notify(&self, method: &str, params: Option<&RawJson>) -> Result<(), ClientError> {
        match &self.0.link {
            Link::Stream(link) => link.notify(method, params).await,
            #[cfg(feature = "http")]
            Link::Http(link) => link.notify(method, params).await,
        }
    }
}

impl PendingRequest<'_> {
    async fn wait(&mut self) -> Result<RawJson, ClientError> {
        match self {
            Self::Stream(call) => call.wait().await,
            #[cfg(feature = "http")]
            Self::Http(call) => call.await,
        }
    }
}

/// Adds a progress token to the params if the caller wants progress.
pub(super) fn with_progress_token<'a>(
    id: u64,
    params: &'a Params,
    options: &RequestOptions,
) -> Cow<'a, Params> {
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
