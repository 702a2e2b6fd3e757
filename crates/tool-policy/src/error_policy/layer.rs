use std::{borrow::Cow, collections::HashMap, sync::Arc, time::Duration};

use crate::ErrorPolicySettings;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use raw_json::RawJson;
use tool_core::{
    Alert, AlertKind, AlertPhase, AlertSubject, CallContext, ErrorKind, Event, Instant, Invoke, Layer,
    NamedLayer, Outcome, ToolError,
};

use super::masking::{mask, text_for_caller};

/// Rewords errors for callers, and raises alerts for some kinds of them.
///
/// Acts on every call, by the [`ErrorPolicySettings`] that it was created with. They are no settings of a tool.
///
/// The message for a caller is short. It holds nothing that looks like a secret, no credentials in a URL, no internal address
/// and no path of this machine. The original error is its source: surfaces for operators show the source, surfaces for models
/// do not.
///
/// # Order
/// Outermost, so that every layer that observes the call sees the original error.
///
/// Clones share the policy.
///
/// # Examples
/// ```
/// use tool_core::{ErrorKind, ToolError};
/// use tool_policy::ErrorPolicyLayer;
///
/// let error = ToolError::new(ErrorKind::Unavailable, "cannot read /etc/ssl/key.pem");
/// let error = ErrorPolicyLayer::default().for_caller(error);
/// assert_eq!(error.message(), "cannot read [path]");
/// ```
#[derive(Debug, Clone, Default)]
pub struct ErrorPolicyLayer {
    policy: Arc<ArcSwap<ErrorPolicySettings>>,
}

/// Service of [`ErrorPolicyLayer`].
#[derive(Debug, Clone)]
pub struct ErrorPolicy<S> {
    settings: ErrorPolicyLayer,
    inner: S,
}

impl ErrorPolicyLayer {
    /// Creates a layer that applies this policy.
    #[must_use]
    pub fn new(policy: Arc<ErrorPolicySettings>) -> Self {
        Self {
            policy: Arc::new(ArcSwap::new(policy)),
        }
    }

    /// Replaces the policy.
    pub fn reconfigure(&self, policy: Arc<ErrorPolicySettings>) {
        self.policy.store(policy);
    }

    /// Returns the error as a caller sees it.
    #[must_use]
    pub fn for_caller(&self, error: ToolError) -> ToolError {
        let policy = self.policy.load();
        let rule = policy.rule(error.kind());
        let message = match rule.and_then(|rule| rule.message.as_deref()) {
            Some(message) => Some(message.to_owned()),
            None => {
                Some(text_for_caller(error.message()).into_owned()).filter(|text| text != error.message())
            }
        };
        let is_own = rule.is_some_and(|rule| rule.message.is_some());
        let error = match &error.detail() {
            Some(detail) if is_own || reveals_internals(detail) => error.clone().without_detail(),
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
            .get_or_init(LastAlerts::default)
            .is_due(kind, cx.clock.now())
        {
            let message = format!(
                "a call of `{}` ended as `{kind}`: {}",
                tool.name(),
                error.message()
            );
            let subject = AlertSubject::Tool(tool.name().clone());
            let at = cx.clock.wall();
            let alert = Alert::new(AlertKind::Failure, AlertPhase::Firing, subject, message, at);
            cx.observers.emit(&Event::alert(&alert));
        }
    }
}

/// Codes of errors whose data a client needs unchanged: the URLs to visit, and the missing capabilities.
const FORWARDED_CODES: [&str; 2] = ["-32042", "-32021"];

/// Returns `true` if an upstream's error data hold something that callers must not see.
fn reveals_internals(detail: &RawJson) -> bool {
    let is_forwarded = detail
        .get("code")
        .is_some_and(|code| FORWARDED_CODES.contains(&code.as_str()));
    !is_forwarded && matches!(mask(detail.as_str()), Cow::Owned(_))
}

/// Times of the last alerts of one tool, by error kind.
#[derive(Default)]
struct LastAlerts(Mutex<HashMap<ErrorKind, Instant>>);

/// Shortest time between two alerts of the same tool and error kind.
const ALERT_INTERVAL: Duration = Duration::from_secs(5 * 60);

impl LastAlerts {
    /// Returns `true` if an alert is due, and records that it is raised now.
    fn is_due(&self, kind: ErrorKind, now: Instant) -> bool {
        let mut last_alerts = self.0.lock();
        let is_due = last_alerts
            .get(&kind)
            .is_none_or(|last| now.since(*last) >= ALERT_INTERVAL);
        if is_due {
            last_alerts.insert(kind, now);
        }
        is_due
    }
}

impl NamedLayer for ErrorPolicyLayer {
    const NAME: &'static str = "error policy";
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
            self.settings.for_caller(error)
        })
    }
}
