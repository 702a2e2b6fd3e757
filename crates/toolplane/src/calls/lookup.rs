//! From a request to the context of a call.

use std::{sync::Arc, time::Duration};

use tool_core::{
    Arguments, Asker, CallContext, Caller, ClientIdentity, CorrelationId, ErrorKind, Event, Feature, Instant,
    SourceState, Target, Tool, ToolError, format_duration,
};
use tool_registry::{RefusedFeature, Snapshot, WithheldDefinition};

use crate::{
    CallRequest, Toolplane,
    build::error::NotUsable,
    calls::request::{Address, RequestParts},
};

impl Toolplane {
    /// Returns the context of a call whose tool is known, or gives the request back. Boxed, since it is large and the
    /// futures of the call and of its caller would hold it as often as it is moved.
    pub(super) fn known_context(&self, request: CallRequest) -> Result<Box<CallContext>, CallRequest> {
        let known = match &request.0.address {
            Address::Tool(_) if request.0.version.is_some() => self.known_version(&request.0),
            // A tool from a cached list is looked up again once its server runs.
            Address::Tool(name) => {
                let known = self
                    .0
                    .registry
                    .get_confirmed_for(name, || self.client_of(&request.0));
                known.map(Target::Tool).or_else(|| self.known_version(&request.0))
            }
            _ => None,
        };
        match known {
            Some(target) => {
                let deadline = self.deadline(&request);
                Ok(self.context(request, target, deadline))
            }
            None => Err(request),
        }
    }

    /// Returns the requested version of a tool, if it was used before and nothing has changed since.
    fn known_version(&self, request: &RequestParts) -> Option<Target> {
        let (name, version) = request.versioned()?;
        self.0.registry.get_version(name, version).map(Target::Tool)
    }

    /// Returns the requested version of a tool.
    async fn find_version(
        &self,
        request: &RequestParts,
        caller: &Caller,
    ) -> Option<Result<Target, ToolError>> {
        let (name, version) = request.versioned()?;
        let found = self.0.registry.find_version(name, version).await;
        Some(match found {
            // A tool that the caller may not see does not exist for it, in any version.
            Err(error) if error.kind() == ErrorKind::NotFound && !self.may_see(name, caller) => {
                Err(self.not_found(Feature::Tool, name, caller))
            }
            found => found.map(Target::Tool),
        })
    }

    fn may_see(&self, name: &str, caller: &Caller) -> bool {
        let tool = self.0.registry.get(name);
        tool.is_some_and(|tool| self.0.rules.load().admit(&tool, caller).is_ok())
    }

    /// Returns the context of a call whose tool is in a cached list, or gives the request back.
    pub(super) async fn recalled_context(
        &self,
        request: CallRequest,
    ) -> Result<Box<CallContext>, CallRequest> {
        let Address::Tool(name) = &request.0.address else {
            return Err(request);
        };
        self.0.registry.recall().await;
        let Some(tool) = self.0.registry.get(name) else {
            return Err(request);
        };
        let deadline = self.deadline(&request);
        Ok(self.context(request, Target::Tool(tool), deadline))
    }

    /// Returns the context of a call whose server may have to start first.
    pub(super) async fn found_context(
        &self,
        mut request: CallRequest,
    ) -> Result<Box<CallContext>, ToolError> {
        // Counted from the moment at which the caller began to wait.
        let deadline = self.deadline(&request);
        let client = self.client_of(&request.0);
        let wanted = &mut *request.0;
        let caller = wanted.caller.get_or_insert_with(|| self.local_caller()).clone();
        let caller = &caller;
        let found = match self.find_version(wanted, caller).await {
            Some(found) => found,
            None => self.find(&wanted.address, caller, &client, wanted.deadline).await,
        };
        let target = found.inspect_err(|error| {
            self.0.observers.emit(&Event::unresolved(caller, error));
        })?;
        Ok(self.context(request, target, deadline))
    }

    /// Returns the identity of the calling client.
    fn client_of(&self, request: &RequestParts) -> ClientIdentity {
        let local = || self.local_caller();
        let caller = request.caller.clone().unwrap_or_else(local);
        let (ask, key) = (request.ask.as_deref(), request.client.as_ref());
        ClientIdentity::new(ask, key, request.client_capabilities, &caller)
    }

    pub(super) fn deadline(&self, request: &CallRequest) -> Option<Instant> {
        request.0.deadline.map(|deadline| self.0.clock.now() + deadline)
    }

    pub(super) fn context(
        &self,
        request: CallRequest,
        target: Target,
        deadline: Option<Instant>,
    ) -> Box<CallContext> {
        let inner = &*self.0;
        let request = request.0;
        let caller = request.caller.unwrap_or_else(|| self.local_caller());
        let arguments = request.arguments.unwrap_or_else(|| Arc::new(Arguments::none()));
        let cx = CallContext::new(target, arguments, caller, inner.clock.clone());
        let mut cx = Box::new(cx);
        cx.correlation_id = correlation_id();
        cx.deadline = deadline;
        // A tool that an agent made reports nothing while it runs, until an operator accepted that it does.
        let reports = !cx.tool().descriptor().origin.awaits_acceptance();
        cx.origin.progress = request.progress.filter(|_| reports);
        cx.trace = request.trace;
        cx.origin.client = request.client;
        cx.origin.client_capabilities = request.client_capabilities;
        cx.origin.ask = request.ask.map(|ask| Asker::new(ask, inner.clock.clone()));
        cx.extras = request.extras;
        cx
    }

    /// Looks up the target of a call within the caller's deadline, and starts its server if necessary. An entry of a
    /// cached list is looked up again in the list of its server; if that fails, the cached one is called, and the
    /// layers handle the failure.
    pub(crate) async fn find(
        &self,
        address: &Address,
        caller: &Caller,
        client: &ClientIdentity,
        deadline: Option<Duration>,
    ) -> Result<Target, ToolError> {
        let (feature, name) = address.wanted();
        let look = |snapshot: &Snapshot| match address {
            Address::Resource(uri) => snapshot.resource(uri),
            _ => snapshot
                .find(feature, name)
                .map(|found| address.target(found.clone())),
        };
        let look_up = async || {
            let found = self.0.registry.find_in(Some(client), feature, name, look).await;
            match (found, address) {
                (None, Address::Tool(name)) => {
                    let tool = self.find_by_spelling(name, Some(client)).await;
                    tool.map(Target::Tool)
                }
                (found, _) => found,
            }
        };
        let find = async {
            let found = look_up().await?;
            // A call that would be denied starts nothing.
            if self.0.rules.load().admit_call(&found, caller).is_err()
                || !self.0.registry.confirm(found.tool()).await
            {
                return Some(found);
            }
            look_up().await
        };
        let found = match deadline {
            Some(deadline) => tokio::time::timeout(deadline, find).await.map_err(|_| {
                let message = format!(
                    "the server of `{name}` did not start within {}",
                    format_duration(deadline)
                );
                ToolError::new(ErrorKind::Timeout, message)
            })?,
            None => find.await,
        };
        found.ok_or_else(|| self.not_found_by(feature, name, caller, client))
    }

    /// Looks up a tool by the spelling `{server}_{tool}` of its name. `None` unless exactly one tool has it.
    pub(crate) async fn find_by_spelling(
        &self,
        name: &str,
        client: Option<&ClientIdentity>,
    ) -> Option<Arc<Tool>> {
        let mut found = None;
        for full in self.0.registry.expand_name(name) {
            let look = |snapshot: &Snapshot| snapshot.get(&full).cloned();
            let tool = self.0.registry.find_in(client, Feature::Tool, &full, look).await;
            match (tool, &found) {
                (Some(_), Some(_)) => return None,
                (Some(tool), None) => found = Some(tool),
                (None, _) => {}
            }
        }
        found
    }

    /// Returns the error for an unknown name, with the nearest name that this caller may see and the failed server
    /// that may have it.
    pub(crate) fn not_found(&self, feature: Feature, name: &str, caller: &Caller) -> ToolError {
        self.not_found_in(&self.0.registry.snapshot(), feature, name, caller)
    }

    /// [`Toolplane::not_found`] for the view of this client.
    pub(crate) fn not_found_by(
        &self,
        feature: Feature,
        name: &str,
        caller: &Caller,
        client: &ClientIdentity,
    ) -> ToolError {
        self.not_found_in(&self.0.registry.snapshot_for(client), feature, name, caller)
    }

    /// Returns the withheld definition of this name or spelling, if the caller could see the tool.
    fn withheld_for<'a>(
        &self,
        snapshot: &'a Snapshot,
        feature: Feature,
        name: &str,
        caller: &Caller,
    ) -> Option<&'a WithheldDefinition> {
        let by_spelling = || {
            let full = self.0.registry.expand_name(name);
            let mut withheld = full
                .iter()
                .filter_map(|full| snapshot.find_withheld(feature, full));
            withheld
                .next()
                .filter(|_| feature == Feature::Tool && withheld.next().is_none())
        };
        let withheld = snapshot.find_withheld(feature, name).or_else(by_spelling)?;
        self.0
            .rules
            .load()
            .admit(&withheld.tool, caller)
            .is_ok()
            .then_some(withheld)
    }

    fn not_found_in(
        &self,
        snapshot: &Arc<Snapshot>,
        feature: Feature,
        name: &str,
        caller: &Caller,
    ) -> ToolError {
        let kind = feature.as_str();
        if let Some(withheld) = self.withheld_for(snapshot, feature, name, caller) {
            return self.tool_changed(withheld);
        }
        let failed = self.0.registry.find_failed_source(feature, name);
        if let Some((server, status)) = failed {
            let message = format!("the server `{server}` of `{name}` is not available");
            let reason = match &status.state {
                SourceState::Failed(reason) => self.0.redactor.hide_in_text(reason).into_owned(),
                state => format!("it is {state}"),
            };
            let error = ToolError::new(ErrorKind::Unavailable, message).with_source(NotUsable(reason));
            return match status.retry_in {
                Some(pause) => error.with_retry_after(pause),
                None => error,
            };
        }
        let is_it = |refused: &&RefusedFeature| refused.feature == feature && refused.name == name;
        if let Some(refused) = snapshot.refused().iter().find(is_it) {
            let message = format!("the {kind} `{name}` is there but cannot be used");
            return ToolError::new(ErrorKind::Unavailable, message)
                .with_no_retry()
                .with_source(NotUsable(refused.reason.clone()));
        }
        let view = self.view_of(snapshot, caller);
        let nearest = view
            .list(feature)
            .iter()
            .map(|tool| tool.descriptor().uri.as_ref().unwrap_or(tool.name()))
            .map(|known| (strsim::damerau_levenshtein(name, known), known))
            .filter(|(distance, candidate)| *distance <= candidate.len().max(name.len()) / 3)
            .min();
        let message = match nearest {
            Some((_, nearest)) => format!("there is no {kind} `{name}`; did you mean `{nearest}`?"),
            None => format!("there is no {kind} `{name}`"),
        };
        ToolError::new(ErrorKind::NotFound, message)
    }
}

/// Returns a new id. It may become a trace id, all bits of which are expected to be random, so the version bits of a
/// UUID are mixed with others.
fn correlation_id() -> CorrelationId {
    let (high, low) = uuid::Uuid::new_v4().as_u64_pair();
    let low = low ^ high.rotate_left(17);
    let high = high ^ low.rotate_left(29);
    CorrelationId(u128::from(high) << 64 | u128::from(low))
}
