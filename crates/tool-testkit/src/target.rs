use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use serde_json::Value;
use tool_core::{
    Arguments, BoxFuture, CallContext, DispatchState, Invoke, Outcome, Reference, Reply, Secret, SecretError,
    SecretSearch, Secrets, TargetBackend, Tool, ToolError, hide_credentials,
};

/// Secrets with these values, by the names of references.
#[derive(Debug)]
pub struct FixedSecrets(pub BTreeMap<&'static str, &'static str>);

impl Secrets for FixedSecrets {
    fn get<'a>(&'a self, reference: &'a Reference) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        let value = self
            .0
            .get(reference.name.as_str())
            .map(|value| Secret::new(*value));
        Box::pin(std::future::ready(Ok(value)))
    }

    fn has(&self, reference: &Reference) -> Result<bool, SecretError> {
        Ok(self.0.contains_key(reference.name.as_str()))
    }

    fn hide_in_text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let hidden = SecretSearch::new(self.0.values().copied()).hide_in_text(text);
        Cow::Owned(hide_credentials(&hidden).into_owned())
    }
}

/// Calls a tool without layers, as the local caller. Returns how far the call got as well.
///
/// # Cancellation
/// Dropping the future drops the call.
///
/// # Panics
/// If the arguments are no object.
pub async fn call_with_mark(tool: &Arc<Tool>, arguments: Value) -> (Result<Reply, ToolError>, DispatchState) {
    let arguments = Arguments::from_value(arguments).expect("arguments are an object");
    let mut cx = CallContext::local(tool, arguments);
    let outcome = TargetBackend.invoke(&mut cx).await;
    (outcome.and_then(Outcome::into_reply), cx.dispatch().state())
}
