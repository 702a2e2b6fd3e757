use crate::CredentialSettings;
use std::time::{Duration, SystemTime};

use tool_core::{
    Alert, AlertKind, AlertPhase, AlertSubject, Asker, CallContext, DisabledTool, DispatchState, ErrorKind,
    Event, Invoke, Layer, NamedLayer, Observers, Outcome, Refresh, Tool, ToolError, format_duration,
};

/// Refreshes credentials that an upstream refused, and attempts once more with the new ones.
///
/// Acts on calls that fail as [`ErrorKind::Auth`]. The backend of the tool supplies the new credentials:
/// [`Backend::refresh_credentials`](tool_core::Backend::refresh_credentials). [`CredentialSettings`](super::CredentialSettings)
/// in the `Settings` of the tool change for how long it is disabled.
///
/// It disables the tool if the new credentials are refused as well. If there are no new ones, it disables the tool after three
/// refusals in a row, since an upstream may be wrong once.
///
/// An attempt that was refused for its credentials was not carried out: HTTP defines status 401 so (RFC 9110, section 15.5.2).
/// The layer therefore repeats the attempt of any tool. A refusal that new credentials do not change, such as status 403, is
/// marked by [`ToolError::allows_retry`]; the layer passes it on.
///
/// # When a tool is enabled again
/// One of these re-enables it: its credentials changed, which each call checks; the configuration is reloaded; an operator
/// enables it; a trial call after the tool's [`disabled_for`](super::CredentialSettings) is not refused. Observers
/// receive both changes as [`AlertKind::Disabled`].
///
/// # Examples
/// ```
/// use tool_core::Layer;
/// use tool_policy::CredentialRefreshLayer;
///
/// # fn stack<S>(executor: S) {
/// let stack = CredentialRefreshLayer.layer(executor);
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct CredentialRefreshLayer;

/// Service of [`CredentialRefreshLayer`].
#[derive(Debug, Clone)]
pub struct CredentialRefresh<S> {
    inner: S,
}

impl CredentialRefreshLayer {
    /// Name of the layer in events and metrics of refused calls.
    pub const REFUSED_AS: &'static str = "credentials";

    /// Enables a tool again, and notifies observers. Returns `false` if it was not disabled.
    pub fn enable(tool: &Tool, why: &str, observers: &Observers, at: SystemTime) -> bool {
        let was_disabled = tool.state().enable();
        if was_disabled {
            let message = format!("`{}` is switched on again: {why}", tool.name());
            emit_alert(tool, AlertPhase::Resolved, message, observers, at);
        }
        was_disabled
    }
}

fn emit_alert(tool: &Tool, phase: AlertPhase, message: String, observers: &Observers, at: SystemTime) {
    let subject = AlertSubject::Tool(tool.name().clone());
    let alert = Alert::new(AlertKind::Disabled, phase, subject, message, at);
    observers.emit(&Event::alert(&alert));
}

impl NamedLayer for CredentialRefreshLayer {
    const NAME: &'static str = "credential refresh";
}

impl<S> Layer<S> for CredentialRefreshLayer {
    type Invoke = CredentialRefresh<S>;

    fn layer(self, inner: S) -> CredentialRefresh<S> {
        CredentialRefresh { inner }
    }
}

impl<S: Invoke> Invoke for CredentialRefresh<S> {
    async fn invoke(&self, cx: &mut CallContext) -> Result<Outcome, ToolError> {
        let disabled = cx.tool().state().disabled();
        if let Some(disabled) = &disabled {
            check_disabled(cx, disabled).await?;
        }
        if cx.attempt == 0 {
            cx.next_attempt();
        }
        let mut result = self.inner.invoke(cx).await;
        if cx.is_dry_run() {
            return result;
        }
        let mut is_refused_again = false;
        if is_refused(&result) && !cx.origin.ask.as_ref().is_some_and(Asker::has_asked) {
            let tool = cx.tool().clone();
            if tool.executor().refresh_credentials_boxed(Refresh::Force).await {
                // Results cached under the old credentials do not apply to the new ones.
                tool.state().credentials_renewed();
                cx.explain(CredentialRefreshLayer::NAME, || {
                    "attempts again with new credentials".to_owned()
                });
                cx.next_attempt();
                result = self.inner.invoke(cx).await;
                is_refused_again = true;
            } else {
                cx.explain(CredentialRefreshLayer::NAME, || {
                    "the credentials are refused, and there are no new ones".to_owned()
                });
            }
        }
        let state = cx.tool().state();
        if is_refused(&result) {
            if state.refused() >= MAX_REFUSALS || is_refused_again || disabled.is_some() {
                disable_tool(cx);
            }
        } else if result.is_ok() || cx.dispatch().state() == DispatchState::Answered {
            state.accepted();
            if disabled.is_some() {
                let why = "its credentials are accepted again";
                CredentialRefreshLayer::enable(cx.tool(), why, &cx.observers, cx.clock.wall());
            }
        }
        result
    }
}

/// Decides whether a call of a disabled tool may pass: with new credentials, or as a trial call.
async fn check_disabled(cx: &mut CallContext, disabled: &DisabledTool) -> Result<(), ToolError> {
    let tool = cx.tool().clone();
    if tool.executor().refresh_credentials_boxed(Refresh::Peek).await {
        cx.explain(CredentialRefreshLayer::NAME, || {
            "there are new credentials".to_owned()
        });
        return Ok(());
    }
    let (now, pause) = (cx.clock.now(), disabled_for(&tool));
    if !cx.is_dry_run() && tool.state().try_out(now, pause.max(MIN_TRIAL_INTERVAL)) {
        cx.explain(CredentialRefreshLayer::NAME, || {
            "trial call: are the credentials accepted again?".to_owned()
        });
        return Ok(());
    }
    let left = disabled.until.since(now);
    let message = format!("`{}` is switched off: {}", tool.name(), disabled.reason);
    cx.explain(CredentialRefreshLayer::NAME, || message.clone());
    cx.emit_refused(CredentialRefreshLayer::REFUSED_AS, "switched_off");
    Err(ToolError::new(ErrorKind::Auth, message)
        .with_no_retry()
        .with_retry_after(left))
}

/// Number of refusals in a row after which a tool is disabled.
const MAX_REFUSALS: u32 = 3;
/// Minimum time between two trial calls, so that not all concurrent calls are trials.
const MIN_TRIAL_INTERVAL: Duration = Duration::from_secs(1);

/// Returns `true` if the credentials were refused and new ones may help.
fn is_refused(result: &Result<Outcome, ToolError>) -> bool {
    result
        .as_ref()
        .is_err_and(|error| error.kind() == ErrorKind::Auth && error.allows_retry())
}

/// Returns the time for which the tool is disabled when its credentials are rejected.
fn disabled_for(tool: &Tool) -> Duration {
    let settings = tool.settings().get::<CredentialSettings>();
    settings.copied().unwrap_or_default().disabled_for
}

fn disable_tool(cx: &mut CallContext) {
    let tool = cx.tool().clone();
    let pause = disabled_for(&tool);
    if pause.is_zero() {
        return;
    }
    // The table of error kinds holds the hint for callers.
    let reason = "its credentials are refused";
    let is_new = tool.state().disable(DisabledTool::new(
        reason.to_owned(),
        cx.clock.wall(),
        cx.clock.now() + pause,
    ));
    cx.explain(CredentialRefreshLayer::NAME, || {
        format!("switched off for {}", format_duration(pause))
    });
    if is_new {
        let message = format!("`{}` is switched off: {reason} and must be renewed", tool.name());
        emit_alert(&tool, AlertPhase::Firing, message, &cx.observers, cx.clock.wall());
    }
}
