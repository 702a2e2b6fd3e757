//! Messages that clients send by POST.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use hyper::body::Body;
use mcp_wire::{
    Era, Message, Notification, ParseErrorKind, Request, Response as ClientResponse, RpcError, code, header,
    method,
};
use tokio::sync::mpsc;

use super::{
    Endpoint, HttpResponse,
    admission::{Admission, Admitted, check_header_params},
    body::read_body,
    exchange::{Exchange, ServiceCall, Step},
};
use crate::{
    HeaderParams, ProgressReporter, Service,
    client::EventSender,
    protocol,
    request::ParsedParams,
    streamable_http::{head::Accepts, response},
};

/// Request that is ready to be answered: its revision, session and headers are checked.
pub(super) struct Opened {
    pub(super) admitted: Admitted,
    pub(super) admission: Admission,
    pub(super) request: Request,
    pub(super) params: ParsedParams,
}

/// Request whose headers cannot be checked before the service has looked up its tool.
pub(super) struct PendingTool<'a> {
    opened: Opened,
    header_params: HeaderParams<'a>,
}

/// Request that has gone as far as possible without waiting.
pub(super) enum Started {
    /// The request is answered.
    Response(Box<HttpResponse>),
    /// The service answers the request.
    Exchange(Exchange, Accepts, Era),
    /// The client opens a subscription.
    Subscription(Box<Opened>),
}

impl From<HttpResponse> for Started {
    fn from(response: HttpResponse) -> Self {
        Self::Response(Box::new(response))
    }
}

/// Maximum number of events of one request that wait for a slow client.
const MAX_EVENTS: usize = 256;

impl<S: Service> Endpoint<S> {
    pub(super) async fn post<B: Body<Data = Bytes>>(
        self: Arc<Self>,
        admitted: Admitted,
        body: B,
    ) -> HttpResponse {
        let format = admitted.format;
        if !format.accepts.json && !format.accepts.events {
            let message = "`Accept` must allow `application/json` and `text/event-stream`";
            return response::refuse(StatusCode::NOT_ACCEPTABLE, message);
        }
        if !format.is_json {
            let message = "the body must be `application/json`, not compressed";
            return response::refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, message);
        }
        let limit = self.options.max_body;
        let bytes = match read_body(body, limit, self.options.body_timeout).await {
            Ok(bytes) => bytes,
            Err(error) => return response::body_error(error, limit),
        };
        match Message::from_client(bytes.clone()) {
            Ok(Message::Request(request)) => {
                // The message may be a copy, and a call may take long.
                drop(bytes);
                self.answer(admitted, request).await
            }
            Ok(Message::Notification(notification)) => self.notification(admitted, &notification),
            Ok(Message::Response(response)) => self.client_response(&admitted, response),
            Err(error) if *error.kind() == ParseErrorKind::Batch && self.accepts_batches(&admitted) => {
                Box::pin(self.batch(&admitted, bytes)).await
            }
            Err(error) => response::error(StatusCode::BAD_REQUEST, error.answer_id(), &error.to_rpc_error()),
        }
    }

    async fn answer(&self, admitted: Admitted, request: Request) -> HttpResponse {
        let started = match self.start(admitted, request) {
            Ok(started) => started,
            // Boxed, since it is rare and the futures of all other requests would have room for it.
            Err(pending) => Box::pin(self.resolve(pending)).await,
        };
        let (mut exchange, accepts, era) = match started {
            Started::Exchange(exchange, accepts, era) => (exchange, accepts, era),
            Started::Subscription(opened) => return Box::pin(self.subscribe(*opened)).await,
            Started::Response(response) => return *response,
        };
        match exchange.step().await {
            Step::Event(event) => response::events(event, exchange, self.options.keep_alive),
            Step::End(Some(reply)) => response::finish(reply, era, accepts),
            Step::End(None) if accepts.events => response::no_events(),
            Step::End(None) => response::empty(StatusCode::NO_CONTENT),
        }
    }

    /// Opens a request, and goes as far with it as possible without waiting. Fails if the service has to look up its tool
    /// first, see [`resolve`](Self::resolve).
    pub(super) fn start(
        &self,
        admitted: Admitted,
        request: Request,
    ) -> Result<Started, Box<PendingTool<'_>>> {
        let params = ParsedParams::parse(request.params.as_ref());
        if params.version.is_none() && request.method == method::INITIALIZE {
            return Ok(self.initialize(&admitted, &request).into());
        }
        let admission = match &params.version {
            Some(declared) => self.admit_modern(&admitted, declared, &params, &request.method),
            None => self
                .admit_legacy(&admitted)
                .map(|admission| (admission, HeaderParams::None)),
        };
        let (admission, header_params) = match admission {
            Ok(admission) => admission,
            Err((status, error)) => {
                return Ok(response::error(status, Some(request.id.as_raw()), &error).into());
            }
        };
        let opened = Opened {
            admitted,
            admission,
            request,
            params,
        };
        if let HeaderParams::Pending(_) = header_params {
            return Err(Box::new(PendingTool {
                opened,
                header_params,
            }));
        }
        Ok(self.dispatch(opened))
    }

    /// Looks up the tool of a request, and makes the checks that had to wait for it. A tool that stays unknown is for the
    /// service to refuse, unless the call has headers that nobody can check.
    pub(super) async fn resolve(&self, pending: Box<PendingTool<'_>>) -> Started {
        let PendingTool {
            opened,
            mut header_params,
        } = *pending;
        if let HeaderParams::Pending(lookup) = header_params {
            header_params = lookup.await;
        }
        match check_header_params(&header_params, &opened.admitted, &opened.params) {
            Ok(()) => self.dispatch(opened),
            Err((status, error)) => response::error(status, Some(opened.request.id.as_raw()), &error).into(),
        }
    }

    /// Hands a request to the one that answers it: the protocol, a subscription, or the service.
    fn dispatch(&self, opened: Opened) -> Started {
        let Admission { revision, session } = &opened.admission;
        let (revision, era) = (*revision, revision.era());
        if era == Era::Modern && opened.request.method == method::SUBSCRIPTIONS_LISTEN {
            return Started::Subscription(Box::new(opened));
        }
        let accepts = opened.admitted.format.accepts;
        let client = session.as_ref().map(|session| &*session.client);
        if let Some(outcome) = self.core.answer_protocol(&opened.request, revision, client) {
            let reply = protocol::reply(&opened.request.id, outcome.map(Into::into), era);
            return response::finish(reply, era, accepts).into();
        }
        match self.call_service(opened) {
            Ok(exchange) => Started::Exchange(exchange, accepts, era),
            Err(refused) => Started::Response(refused),
        }
    }

    fn call_service(&self, opened: Opened) -> Result<Exchange, Box<HttpResponse>> {
        let Opened {
            admitted,
            admission,
            request,
            params,
        } = opened;
        let mut in_flight = None;
        if let Some(session) = &admission.session {
            let Some(begun) = session.in_flight.begin(&request.id) else {
                let error = protocol::duplicate_id(&request.id);
                let id = Some(request.id.as_raw());
                return Err(Box::new(response::error(StatusCode::BAD_REQUEST, id, &error)));
            };
            in_flight = Some(begun);
        }
        let has_events = admitted.format.accepts.events;
        let mut cx = admitted.into_context(&admission, params);
        let mut events = None;
        if has_events && (cx.params.token.is_some() || cx.accepts_messages()) {
            let (sender, receiver) = mpsc::channel(MAX_EVENTS);
            let sender = EventSender::for_response(cx.params.token.clone(), sender);
            cx.progress = ProgressReporter(Some(sender));
            events = Some(receiver);
        }
        let Admission { revision, session } = admission;
        let call = Arc::clone(&self.core).answer(request, cx);
        let detached = (revision.era() == Era::Legacy).then(|| Arc::clone(&self.detached));
        Ok(Exchange::new(
            ServiceCall::new(call, in_flight),
            events,
            detached,
            session,
        ))
    }

    fn initialize(&self, admitted: &Admitted, request: &Request) -> HttpResponse {
        let accepts = admitted.format.accepts;
        let (client, result) = match self.core.initialize(request) {
            Ok(opened) => opened,
            Err(error) => {
                let reply = protocol::reply(&request.id, Err(error), Era::Legacy);
                return response::finish(reply, Era::Legacy, accepts);
            }
        };
        let (principal, handle) = (admitted.principal.clone(), self.core.new_connection());
        let Some(session) = self.sessions.open(client, principal, handle) else {
            let error = RpcError::new(code::INTERNAL_ERROR, "there is no room for another session");
            return response::error(StatusCode::SERVICE_UNAVAILABLE, Some(request.id.as_raw()), &error);
        };
        let reply = protocol::reply(&request.id, Ok(result.into()), Era::Legacy);
        let mut response = response::finish(reply, Era::Legacy, accepts);
        let id = HeaderValue::from_str(&session.id).expect("hexadecimal digits are valid in a header");
        response.headers_mut().insert(header::SESSION_ID, id);
        response
    }

    pub(super) fn notification(&self, admitted: Admitted, notification: &Notification) -> HttpResponse {
        let params = ParsedParams::parse(notification.params.as_ref());
        let admission = match &params.version {
            // The modern era does not define which headers a notification needs.
            Some(declared) => protocol::modern_revision(declared, &params)
                .map(Admission::without_session)
                .map_err(|error| (StatusCode::BAD_REQUEST, error)),
            None => self.admit_legacy(&admitted),
        };
        let admission = match admission {
            Ok(admission) => admission,
            Err((status, error)) => return response::error(status, None, &error),
        };
        match (&*notification.method, &admission.session) {
            (method::CANCELLED, Some(session)) => {
                let id = notification
                    .params
                    .as_ref()
                    .and_then(|params| params.get("requestId"));
                if let Some(id) = id {
                    session.in_flight.cancel(&id);
                }
            }
            (method::CANCELLED | method::INITIALIZED, _) => {}
            _ => {
                let cx = admitted.into_context(&admission, params);
                self.core.service.on_notification(notification, &cx);
            }
        }
        response::empty(StatusCode::ACCEPTED)
    }

    /// Delivers a client's response to a request of the server. Only its own session has sent it one.
    pub(super) fn client_response(&self, admitted: &Admitted, response: ClientResponse) -> HttpResponse {
        match self.admit_legacy(admitted) {
            Ok(admission) => {
                if let Some(session) = admission.session {
                    session.client.requests.deliver(response);
                }
                response::empty(StatusCode::ACCEPTED)
            }
            Err((status, error)) => response::error(status, None, &error),
        }
    }
}
