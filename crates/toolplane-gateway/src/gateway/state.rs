use std::sync::Arc;

use mcp_server::{Principal, RequestContext, StateSeal};
use mcp_wire::{Request, RpcError, code, method};
use raw_json::RawJson;
use toolplane::{
    CallRequest, Toolplane,
    core::{Caller, OnUpdate},
};

use super::options::GatewayOptions;
use crate::{
    client::{
        ANONYMOUS, ANSWER_TIMEOUT, ClientIdentities, client_key, declared_capabilities, resolve_caller,
    },
    discovery::Offer,
    eras::ParkedCalls,
    lists::{FirstAnswers, ListPages},
    notifications::{Notifiers, ResourceSubscriptions, Router},
    pages::add_gauges,
    requests::MirroredParamsCache,
    tasks::TaskStore,
};

/// Everything that the requests of a gateway share.
pub(crate) struct GatewayState {
    pub(crate) plane: Toolplane,
    pub(crate) options: GatewayOptions,
    pub(crate) lists: ListPages,
    /// Tools that clients are listed.
    pub(crate) offer: Offer,
    pub(crate) identities: Arc<ClientIdentities>,
    /// Calls that wait for an answer of their clients.
    pub(crate) parked: Arc<ParkedCalls>,
    /// Notifiers of the clients that are served now.
    pub(crate) notifiers: Arc<Notifiers>,
    /// Resources that clients subscribed to.
    pub(crate) subscriptions: ResourceSubscriptions,
    /// Tasks that clients may come back for.
    pub(crate) tasks: Arc<TaskStore>,
    pub(crate) mirrored_params: MirroredParamsCache,
    /// `None` if the system has no randomness to give. Modern clients cannot be asked anything then.
    seal: Option<StateSeal>,
}

impl GatewayState {
    pub(super) fn new(plane: Toolplane, options: GatewayOptions) -> Self {
        let lists = ListPages::new(options.page_size);
        let offer = Offer::new(options.mode, options.pinned.clone(), options.execute);
        let notifiers = Arc::new(Notifiers::default());
        let tasks = Arc::new(TaskStore::default());
        let identities = Arc::new(ClientIdentities::new(&plane, options.caller_resolver.clone()));
        let router = Router::new(&notifiers, &tasks, &identities);
        let on_update: OnUpdate = Arc::new(move |update| router.route(update));
        plane.on_update(&on_update);
        let parked = Arc::<ParkedCalls>::default();
        if let Some(metrics) = &options.metrics {
            add_gauges(metrics, &plane, Arc::downgrade(&parked));
        }
        let seal = match &options.state_key {
            Some(key) => Some(StateSeal::with_key(key.clone(), ANSWER_TIMEOUT)),
            None => StateSeal::new(ANSWER_TIMEOUT).ok(),
        };
        Self {
            plane,
            options,
            lists,
            offer,
            identities,
            parked,
            notifiers,
            subscriptions: ResourceSubscriptions::default(),
            tasks,
            mirrored_params: MirroredParamsCache::default(),
            seal,
        }
    }

    /// Returns the answers of an earlier run, until the lists are known.
    pub(super) fn early_answers(&self) -> Option<&FirstAnswers> {
        let early = self.options.first_answers.as_ref();
        early.filter(|_| !self.plane.has_recalled())
    }

    /// Returns the instructions of an earlier run, without secrets that are known by now.
    pub(super) fn early_instructions(&self, early: &FirstAnswers) -> Option<String> {
        let text = RawJson::from(early.instructions()?);
        self.plane.hide_secrets(&text).unwrap_or(text).string()
    }

    /// Returns the answer of an earlier run to this request, if it is one for the first page of the tools, the principal is the
    /// same, and the lists are not known yet.
    pub(super) fn early_page(&self, request: &Request, cx: &RequestContext) -> Option<RawJson> {
        let early = self.early_answers()?;
        let has_cursor = || request.params.as_ref()?.get("cursor");
        let is_first = request.method == method::TOOLS_LIST && has_cursor().is_none();
        if !is_first || early.principal() != cx.principal().as_str() {
            return None;
        }
        let page = early.page(cx.era());
        Some(self.plane.hide_secrets(&page).unwrap_or(page))
    }

    /// Waits until the lists are known, if clients are answered before.
    pub(super) async fn lists_known(&self) {
        if self.early_answers().is_some() {
            self.plane.recall().await;
        }
    }

    /// Returns the seal of the states that clients give back.
    pub(crate) fn seal(&self) -> Result<&StateSeal, RpcError> {
        let missing = || {
            RpcError::new(
                code::INTERNAL_ERROR,
                "cannot seal `requestState`: no randomness available",
            )
        };
        self.seal.as_ref().ok_or_else(missing)
    }

    /// Returns the caller that a principal acts as.
    pub(crate) fn caller(&self, principal: &Principal) -> Arc<Caller> {
        resolve_caller(&self.plane, self.options.caller_resolver.as_ref(), principal)
    }

    /// Adds the caller and the client of a request to a call. Inlined, since a call is large to move.
    #[inline]
    pub(crate) fn attribute(&self, call: CallRequest, cx: &RequestContext) -> CallRequest {
        call.caller(self.caller(cx.principal()))
            .client(client_key(cx))
            .client_capabilities(declared_capabilities(cx))
    }

    /// Returns `true` if everybody who can reach the gateway reads the same from a resource: clients are not identified,
    /// and the resource does not depend on the caller.
    pub(crate) fn is_public(&self, uri: &str, principal: &Principal) -> bool {
        self.options.caller_resolver.is_none()
            && principal.as_str() == ANONYMOUS
            && self.plane.is_same_for_all(uri)
    }
}
