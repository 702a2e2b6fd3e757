use std::{borrow::Cow, collections::HashMap, sync::Arc, time::Duration};

use crate::ErrorPolicySettings;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use raw_json::RawJson;
use tool_core::{
    Alert, AlertKind, AlertPhase, AlertSubject, CallContext, ErrorKind, Event, Instant, Invoke, Layer,
    Outcome, ToolError,
};

use super::masking::{masked, tellable};

/// Puts errors into the words that callers get, by the [`ErrorPolicySettings`], and tells operators of those that it says.
///
/// What a caller is told is short and holds nothing that looks like a secret, no credentials in a URL, no address of the inside and no
/// path of this machine. The error as it was is its cause: surfaces for operators show that, those for models do not.
///
/// # Order
/// Outermost, so that whatever watches the call has the error as it was.
///
/// Clones share the policy.
#[derive(Debug, Clone, Default)]
pub struct ErrorPolicyLayer {
    policy: Arc<ArcSwap<ErrorPolicySettings>>,
}

/// The layer of [`ErrorPolicyLayer`].
#[derive(Debug, Clone)]
pub struct ErrorPolicy<S> {
    settings: ErrorPolicyLayer,
    inner: S,
}

impl ErrorPolicyLayer {
    /// A layer that goes by this policy.
    #[must_use]
    pub fn new(policy: Arc<ErrorPolicySettings>) -> Self {
        Self {
            policy: Arc::new(ArcSwap::new(policy)),
        }
    }

    /// Goes by this policy from now on.
    pub fn adopt(&self, policy: Arc<ErrorPolicySettings>) {
        self.policy.store(policy);
    }

    /// The error as a caller is told it.
    #[must_use]
    pub fn told(&self, error: ToolError) -> ToolError {
        let policy = self.policy.load();
        let rule = policy.rule(error.kind());
        let message = match rule.and_then(|rule| rule.message.as_deref()) {
            Some(message) => Some(message.to_owned()),
            None => Some(tellable(error.message()).into_owned()).filter(|told| told != error.message()),
        };
        let is_own = rule.is_some_and(|rule| rule.message.is_some());
        let error = match &error.detail() {
            Some(detail) if is_own || is_telling(detail) => error.clone().without_detail(),
            _ => error,
        };
        let error = match message {
            Some(message) => error.reworded(message),
            None => error,
        };
        match rule.and_then(|rule| rule.advice.clone()) {
            Some(advice) => error.with_advice(advice),
            None => error,
        }
    }

    fn alert(&self, cx: &CallContext, error: &ToolError) {
        let kind = error.kind();
        if !self.policy.load().alerts(kind) || cx.observers.is_empty() {
            return;
        }
        let tool = cx.tool();
        if tool
            .state()
            .get_or_init(Told::default)
            .is_new(kind, cx.clock.now())
        {
            let message = format!(
                "a call of `{}` ended as `{kind}`: {}",
                tool.name(),
                error.message()
            );
            let subject = AlertSubject::Tool(tool.name().clone());
            let at = cx.clock.wall();
            let alert = Alert::new(AlertKind::Failure, AlertPhase::Firing, subject, message, at);
            cx.observers.tell(&Event::Alert { alert: &alert });
        }
    }
}

/// Codes of errors whose data a client needs as they are: the pages to visit, and the capabilities that are missing.
const NEEDED: [&str; 2] = ["-32042", "-32021"];

/// Whether what an upstream said, as data, tells more than it may.
fn is_telling(detail: &RawJson) -> bool {
    let is_needed = detail
        .get("code")
        .is_some_and(|code| NEEDED.contains(&code.as_str()));
    !is_needed && matches!(masked(detail.as_str()), Cow::Owned(_))
}

/// When operators were told of a tool's failures last.
#[derive(Default)]
struct Told(Mutex<HashMap<ErrorKind, Instant>>);

/// How long one alert stands for all others of a tool and kind.
const QUIET: Duration = Duration::from_secs(5 * 60);

impl Told {
    fn is_new(&self, kind: ErrorKind, now: Instant) -> bool {
        let mut told = self.0.lock();
        let is_new = told.get(&kind).is_none_or(|last| now.since(*last) >= QUIET);
        if is_new {
            told.insert(kind, now);
        }
        is_new
    }
}

impl<S> Layer<S> for ErrorPolicyLayer {
    type Invoke = ErrorPolicy<S>;

    fn layer(self, inner: S) -> ErrorPolicy<S> {
        ErrorPolicy {
            settings: self,
            inner,
        }
    }
}

impl<S: Invoke> Invoke for ErrorPolicy<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        self.inner.invoke(cx).await.map_err(|error| {
            self.settings.alert(cx, &error);
            self.settings.told(error)
        })
    }
}
