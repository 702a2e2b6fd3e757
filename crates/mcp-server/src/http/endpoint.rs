use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, request::Parts};
use hyper::body::Body;
use mcp_wire::{
    Era, Message, Notification, ParseErrorKind, Request, Response as ClientResponse, Revision, RpcError,
    code, header, method,
};
use raw_json::RawJson;
use tokio::sync::mpsc;

use super::{
    HttpServerOptions, ResponseBody, body,
    cors::Cors,
    exchange::{Detached, Exchange, Refuge, Step, Work},
    guard,
    headers::{self, Accepts, Form, Known},
    news,
    old_clients::OldClients,
    response,
    seats::Seats,
    session::{Session, Sessions},
    standing::{Standing, stateless},
    subscription::Subscriptions,
};
use crate::{
    Peer, Principal, ProgressReporter, RequestContext, Service,
    outline::Outline,
    protocol::{self, Core},
    way::Way,
};

/// What the clones of a service share.
pub(super) struct Endpoint<S> {
    pub(super) core: Arc<Core<S>>,
    pub(super) options: HttpServerOptions,
    anonymous: Principal,
    pub(super) sessions: Arc<Sessions>,
    pub(super) seats: Arc<Seats>,
    subscriptions: Arc<Subscriptions>,
    pub(super) old_clients: Arc<OldClients>,
    detached: Arc<Detached>,
    is_draining: AtomicBool,
}

/// What is known of a request before it is answered.
#[derive(Clone)]
pub(super) struct Inbound {
    pub(super) parts: Box<Parts>,
    pub(super) principal: Principal,
    pub(super) form: Form,
}

impl Inbound {
    /// What is known about a message besides the message itself.
    fn context(self, revision: Revision, outline: Outline, session: Option<&Arc<Session>>) -> RequestContext {
        RequestContext {
            revision,
            outline,
            client: session.map(|session| Arc::clone(&session.client)),
            session: session.map(|session| Arc::clone(&session.id)),
            connection: session.map(|session| session.presence.number()),
            connection_name: session.map(|session| session.presence.name()),
            principal: self.principal,
            progress: ProgressReporter::default(),
            is_traced: self.form.is_traced,
            http: Some(self.parts),
        }
    }
}

pub(super) type Answered = Response<ResponseBody>;

/// What came of a request as far as nothing had to be waited for.
pub(super) enum Begun {
    Answered(Box<Answered>),
    Exchange(Exchange, Accepts, Era),
    Subscription(Box<Wanted>),
}

/// A request for a tool that the service does not know yet.
pub(super) struct Unlearned {
    inbound: Inbound,
    standing: Standing,
    request: Request,
    outline: Outline,
}

/// A subscription that a client wants.
pub(super) struct Wanted {
    inbound: Inbound,
    request: Request,
    revision: Revision,
    outline: Outline,
}

impl From<Answered> for Begun {
    fn from(answered: Answered) -> Self {
        Self::Answered(Box::new(answered))
    }
}

/// How many reports of one request may wait for a client that is slow to read.
const REPORTS: usize = 256;

impl<S: Service> Endpoint<S> {
    pub(super) fn new(service: S, options: HttpServerOptions) -> Self {
        Self {
            core: Arc::new(Core::new(service)),
            anonymous: Principal::new("anonymous"),
            sessions: Arc::new(Sessions::new(
                options.max_sessions,
                options.session_idle,
                options.notices.clone(),
            )),
            seats: Arc::new(Seats::new(options.max_streams, options.max_streams_each)),
            subscriptions: Arc::default(),
            old_clients: Arc::new(OldClients::new(options.max_sessions)),
            detached: Arc::new(Detached::new(options.max_detached)),
            is_draining: AtomicBool::new(false),
            options,
        }
    }

    pub(super) fn service(&self) -> &S {
        &self.core.service
    }

    pub(super) fn end_streams(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
        self.detached.close();
        self.sessions.end_streams();
        self.subscriptions.end();
        self.old_clients.end();
    }

    /// Answers one HTTP request.
    pub(super) fn respond<B: Body<Data = Bytes>>(
        self: Arc<Self>,
        request: http::Request<B>,
    ) -> impl Future<Output = Answered> + use<S, B> {
        let (parts, body) = request.into_parts();
        let cors = Cors::of(&parts.headers, &self.options.allowed.load());
        // It goes through many hands: boxed here, it is in none of their futures.
        let answering = self.route(Box::new(parts), body, cors.clone());
        async move {
            let mut answer = answering.await;
            cors.apply(&mut answer);
            answer
        }
    }

    async fn route<B: Body<Data = Bytes>>(
        self: Arc<Self>,
        parts: Box<Parts>,
        body: B,
        cors: Cors,
    ) -> Answered {
        if let Some(answer) = cors.preflight(&parts) {
            let checked = self.check_head(&parts, &Known::of(&parts.headers));
            return checked.map_or_else(|refused| *refused, |()| answer);
        }
        let (principal, form) = match self.admit(&parts) {
            Ok(admitted) => admitted,
            Err(refused) => return *refused,
        };
        if self.is_for_old_clients(&parts) {
            return Box::pin(self.old_client(&parts, form, principal, body)).await;
        }
        match parts.method {
            Method::POST => self.post(parts, form, principal, body).await,
            Method::GET => self.listen(&parts, form, &principal),
            Method::DELETE => self.end_session(&parts, &principal),
            _ => response::method_not_allowed(),
        }
    }

    /// The checks that need nothing but the head, whose request it is, and what its head says of its form.
    fn admit(&self, parts: &Parts) -> Result<(Principal, Form), Box<Answered>> {
        let known = Known::of(&parts.headers);
        self.check_head(parts, &known)?;
        Ok((self.identify(parts)?, Form::of(&known, &parts.headers)))
    }

    /// Checks the names in the head and its path.
    fn check_head(&self, parts: &Parts, known: &Known<'_>) -> Result<(), Box<Answered>> {
        self.check_names(parts, known)?;
        if self
            .options
            .path
            .as_deref()
            .is_some_and(|path| path != parts.uri.path())
            && !self.is_for_old_clients(parts)
        {
            let message = "nothing is served at this path";
            return Err(Box::new(response::refuse(StatusCode::NOT_FOUND, message)));
        }
        Ok(())
    }

    /// The same checks for what is served at another path.
    pub(super) fn admit_beside(&self, parts: &Parts) -> Result<Principal, Box<Answered>> {
        self.check_names(parts, &Known::of(&parts.headers))?;
        self.identify(parts)
    }

    fn check_names(&self, parts: &Parts, known: &Known<'_>) -> Result<(), Box<Answered>> {
        let refuse = |message: &str| Err(Box::new(response::refuse(StatusCode::FORBIDDEN, message)));
        let allowed = self.options.allowed.load();
        let own_host = self.options.own_host.as_deref();
        if !guard::is_host_allowed(known, &parts.uri, &allowed.hosts, own_host) {
            return refuse("this host name is not served here");
        }
        if !guard::is_origin_allowed(known, &parts.uri, &allowed, own_host) {
            return refuse(
                "this origin is not allowed: it is neither the server's own nor among those that it lists",
            );
        }
        Ok(())
    }

    fn identify(&self, parts: &Parts) -> Result<Principal, Box<Answered>> {
        match &self.options.identify {
            Some(identify) => identify(parts).map_err(|refusal| Box::new(response::refusal(refusal))),
            None => Ok(self.anonymous.clone()),
        }
    }

    async fn post<B: Body<Data = Bytes>>(
        self: Arc<Self>,
        parts: Box<Parts>,
        form: Form,
        principal: Principal,
        body: B,
    ) -> Answered {
        if !form.accepts.json && !form.accepts.events {
            let message = "`Accept` must allow `application/json` and `text/event-stream`";
            return response::refuse(StatusCode::NOT_ACCEPTABLE, message);
        }
        if !form.is_json {
            let message = "the body must be `application/json`, not compressed";
            return response::refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, message);
        }
        let limit = self.options.max_body;
        let bytes = match body::read(body, limit, self.options.body_timeout).await {
            Ok(bytes) => bytes,
            Err(fault) => return response::body_fault(fault, limit),
        };
        let message = Message::from_client(bytes.clone());
        let inbound = Inbound {
            parts,
            principal,
            form,
        };
        match message {
            Ok(Message::Request(request)) => {
                // The message may be a copy, and a call takes its time.
                drop(bytes);
                self.request(inbound, request).await
            }
            Ok(Message::Notification(notification)) => self.notification(inbound, &notification),
            Ok(Message::Response(response)) => self.response(&inbound, response),
            Err(error) if *error.kind() == ParseErrorKind::Batch && self.takes_batches(&inbound) => {
                Box::pin(self.batch(&inbound, bytes)).await
            }
            Err(error) => response::error(StatusCode::BAD_REQUEST, error.answer_id(), &error.to_rpc_error()),
        }
    }

    async fn request(&self, inbound: Inbound, request: Request) -> Answered {
        let begun = match self.begin(inbound, request) {
            Ok(begun) => begun,
            Err(unlearned) => Box::pin(self.begin_learned(unlearned)).await,
        };
        let (mut exchange, accepts, era) = match begun {
            Begun::Answered(answered) => return *answered,
            Begun::Exchange(exchange, accepts, era) => (exchange, accepts, era),
            Begun::Subscription(subscription) => return Box::pin(self.subscribe(*subscription)).await,
        };
        match exchange.step().await {
            Step::Report(report) => response::events(&report, exchange, self.options.keep_alive),
            Step::End(Some(reply)) => response::finish(reply, era, accepts),
            Step::End(None) if accepts.events => response::no_events(),
            Step::End(None) => response::empty(StatusCode::NO_CONTENT),
        }
    }

    /// Goes as far with a request as nothing has to be waited for. The error is one whose tool the service has to get to
    /// know first, see [`begin_learned`](Self::begin_learned).
    pub(super) fn begin(&self, inbound: Inbound, request: Request) -> Result<Begun, Box<Unlearned>> {
        let outline = Outline::of(request.params.as_ref());
        if outline.version.is_none() && request.method == method::INITIALIZE {
            return Ok(self.initialize(&inbound, &request).into());
        }
        let standing = match &outline.version {
            Some(declared) => self.modern(&inbound, declared, &outline, &request.method),
            None => self.legacy(&inbound),
        };
        match standing {
            Ok(standing) if standing.is_unlearned => Err(Box::new(Unlearned {
                inbound,
                standing,
                request,
                outline,
            })),
            Ok(standing) => Ok(self.begin_as(inbound, standing, request, outline)),
            Err((status, error)) => Ok(response::error(status, Some(request.id.as_raw()), &error).into()),
        }
    }

    /// Lets the service get to know the tool of a request, and checks what could not be checked before. A tool that it does
    /// not know then is for the service to refuse, but for a call with headers that nobody could check.
    pub(super) async fn begin_learned(&self, unlearned: Box<Unlearned>) -> Begun {
        let Unlearned {
            inbound,
            standing,
            request,
            outline,
        } = *unlearned;
        if let Some(tool) = outline.name.as_ref().and_then(RawJson::text) {
            let peer = super::standing::stateless_peer(&inbound.principal, &outline);
            self.core.service.learn(&tool, &peer).await;
            let checked = match self.check_params(&inbound, &tool, &outline) {
                Ok(true) => Ok(()),
                Ok(false) => headers::refuse_params(&inbound.parts.headers, &tool)
                    .map_err(|error| (StatusCode::BAD_REQUEST, error)),
                Err(fault) => Err(fault),
            };
            if let Err((status, error)) = checked {
                return response::error(status, Some(request.id.as_raw()), &error).into();
            }
        }
        self.begin_as(inbound, standing, request, outline)
    }

    fn begin_as(&self, inbound: Inbound, standing: Standing, request: Request, outline: Outline) -> Begun {
        let (revision, era) = (standing.revision, standing.revision.era());
        if era == Era::Modern && request.method == method::SUBSCRIPTIONS_LISTEN {
            let wanted = Wanted {
                inbound,
                request,
                revision,
                outline,
            };
            return Begun::Subscription(Box::new(wanted));
        }
        let client = standing.session.as_ref().map(|session| &*session.client);
        if let Some(outcome) = self.core.housekeeping(&request, revision, client) {
            let reply = protocol::reply(&request.id, outcome.map(Into::into), era);
            return response::finish(reply, era, inbound.form.accepts).into();
        }
        let accepts = inbound.form.accepts;
        match self.exchange(inbound, standing, request, outline) {
            Ok(exchange) => Begun::Exchange(exchange, accepts, era),
            Err(refused) => Begun::Answered(refused),
        }
    }

    /// Hands a request to the service.
    fn exchange(
        &self,
        inbound: Inbound,
        standing: Standing,
        request: Request,
        outline: Outline,
    ) -> Result<Exchange, Box<Answered>> {
        let Standing {
            revision, session, ..
        } = standing;
        let mut in_flight = None;
        if let Some(session) = &session {
            let Some(taken) = session.in_flight.begin(&request.id) else {
                let error = protocol::duplicate_id(&request.id);
                let id = Some(request.id.as_raw());
                return Err(Box::new(response::error(StatusCode::BAD_REQUEST, id, &error)));
            };
            in_flight = Some(taken);
        }
        let has_events = inbound.form.accepts.events;
        let mut cx = inbound.context(revision, outline, session.as_ref());
        let mut reports = None;
        if has_events && (cx.outline.token.is_some() || cx.may_tell()) {
            let (sender, receiver) = mpsc::channel(REPORTS);
            cx.progress = ProgressReporter(Some(Way::new(cx.outline.token.clone(), sender)));
            reports = Some(receiver);
        }
        let answer = Arc::clone(&self.core).answer(request, cx);
        let refuge = (revision.era() == Era::Legacy).then(|| Refuge(Arc::clone(&self.detached)));
        Ok(Exchange::new(
            Work::new(answer, in_flight),
            reports,
            refuge,
            session,
        ))
    }

    fn initialize(&self, inbound: &Inbound, request: &Request) -> Answered {
        let (client, result) = match self.core.initialize(request) {
            Ok(opened) => opened,
            Err(error) => {
                let reply = protocol::reply(&request.id, Err(error), Era::Legacy);
                return response::finish(reply, Era::Legacy, inbound.form.accepts);
            }
        };
        let (principal, presence) = (inbound.principal.clone(), self.core.presence());
        let Some(session) = self.sessions.open(client, principal, presence) else {
            let error = RpcError::new(code::INTERNAL_ERROR, "there is no room for another session");
            return response::error(StatusCode::SERVICE_UNAVAILABLE, Some(request.id.as_raw()), &error);
        };
        let reply = protocol::reply(&request.id, Ok(result.into()), Era::Legacy);
        let mut answer = response::finish(reply, Era::Legacy, inbound.form.accepts);
        let id = HeaderValue::from_str(&session.id).expect("hexadecimal digits are valid in a header");
        answer.headers_mut().insert(header::SESSION_ID, id);
        answer
    }

    pub(super) fn notification(&self, inbound: Inbound, notification: &Notification) -> Answered {
        let outline = Outline::of(notification.params.as_ref());
        let standing = match &outline.version {
            // What headers the notifications of this era need is not defined.
            Some(declared) => protocol::modern_revision(declared, &outline)
                .map(stateless)
                .map_err(|error| (StatusCode::BAD_REQUEST, error)),
            None => self.legacy(&inbound),
        };
        let standing = match standing {
            Ok(standing) => standing,
            Err((status, error)) => return response::error(status, None, &error),
        };
        match (&*notification.method, &standing.session) {
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
            (_, session) => {
                let cx = inbound.context(standing.revision, outline, session.as_ref());
                self.core.service.notified(notification, &cx);
            }
        }
        response::empty(StatusCode::ACCEPTED)
    }

    /// Takes a client's answer to what it was asked. Only its own session has asked it.
    pub(super) fn response(&self, inbound: &Inbound, answer: ClientResponse) -> Answered {
        match self.legacy(inbound) {
            Ok(standing) => {
                if let Some(session) = standing.session {
                    session.client.asked.answer(answer);
                }
                response::empty(StatusCode::ACCEPTED)
            }
            Err((status, error)) => response::error(status, None, &error),
        }
    }

    /// Opens the stream of a subscription.
    async fn subscribe(&self, wanted: Wanted) -> Answered {
        let Wanted {
            inbound,
            request,
            revision,
            outline,
        } = wanted;
        let accepts = inbound.form.accepts;
        let principal = inbound.principal.clone();
        let cx = inbound.context(revision, outline, None);
        let wants = match self.core.listen(&request, &cx).await {
            Ok(wants) => wants,
            Err(error) => {
                let reply = protocol::reply(&request.id, Err(error), Era::Modern);
                return response::finish(reply, Era::Modern, accepts);
            }
        };
        let refuse = |status, message: &str| {
            let error = RpcError::new(code::INVALID_REQUEST, message);
            response::error(status, Some(request.id.as_raw()), &error)
        };
        if !accepts.events {
            let message = "`Accept` must allow `text/event-stream`";
            return refuse(StatusCode::NOT_ACCEPTABLE, message);
        }
        let seat = match self.seats.take(&principal) {
            Ok(seat) => seat,
            Err(reason) => return response::no_seat(reason, Some(request.id.as_raw())),
        };
        let peer = Peer::from_request(&cx);
        match self.subscriptions.open(wants, peer, &self.options.notices) {
            Some(subscription) => response::subscription(subscription, seat, self.options.keep_alive),
            None => refuse(StatusCode::SERVICE_UNAVAILABLE, "the server is shutting down"),
        }
    }

    /// Opens the stream on which a legacy client listens.
    fn listen(&self, parts: &Parts, form: Form, principal: &Principal) -> Answered {
        let session = match self.session(Known::of(&parts.headers).session, principal) {
            Ok(Some(session)) => session,
            // Only a session has something to tell.
            Ok(None) => return response::method_not_allowed(),
            Err((status, error)) => return response::error(status, None, &error),
        };
        if !form.accepts.events {
            let message = "`Accept` must allow `text/event-stream`";
            return response::refuse(StatusCode::NOT_ACCEPTABLE, message);
        }
        if self.is_draining.load(Ordering::Relaxed) {
            return response::refuse(StatusCode::SERVICE_UNAVAILABLE, "the server is shutting down");
        }
        let Some(last_event) = parts.headers.get(header::LAST_EVENT_ID) else {
            return self.news(&session, principal, None);
        };
        let (stream, event) = match last_event.to_str().ok().and_then(event_id) {
            // An empty id is that of a client that has seen none.
            _ if last_event.is_empty() => return self.news(&session, principal, None),
            Some((news::STREAM, number)) if session.news.has_had(number) => {
                return self.news(&session, principal, Some(number));
            }
            Some(event) => event,
            None => return response::not_resumable(),
        };
        let Some(events) = session.streams.resume(stream, event) else {
            return response::not_resumable();
        };
        match self.seats.take(principal) {
            Ok(seat) => response::resumed(events, seat, self.options.keep_alive),
            Err(reason) => response::no_seat(reason, None),
        }
    }

    /// Opens the stream of a session's news, in the place of the one that there may be.
    fn news(&self, session: &Session, principal: &Principal, after: Option<u64>) -> Answered {
        match session.news.open(after, || self.seats.take(principal)) {
            Ok(news) => response::news(news, self.options.keep_alive),
            Err(reason) => response::no_seat(reason, None),
        }
    }

    fn end_session(&self, parts: &Parts, principal: &Principal) -> Answered {
        match self.session(Known::of(&parts.headers).session, principal) {
            Ok(Some(session)) => {
                self.sessions.close(&session);
                response::empty(StatusCode::NO_CONTENT)
            }
            Ok(None) => response::refuse(StatusCode::BAD_REQUEST, "the header `mcp-session-id` is missing"),
            Err((status, error)) => response::error(status, None, &error),
        }
    }
}

/// The stream and the event that an id names.
fn event_id(id: &str) -> Option<(u64, u64)> {
    let (stream, event) = id.split_once('-')?;
    Some((stream.parse().ok()?, event.parse().ok()?))
}
