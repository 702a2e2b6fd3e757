use crate::CredentialSettings;
use std::time::{Duration, SystemTime};

use tool_core::{
    Alert, AlertKind, AlertPhase, AlertSubject, Asker, CallContext, Disabled, DispatchState, ErrorKind,
    Event, Invoke, Layer, Observers, Outcome, Refresh, Tool, ToolError, format_duration,
};

/// Gets other credentials when an upstream refuses those of a tool, tries once more with them, and switches the tool off
/// when they are refused as well; or when there are no others, and those that there are were refused three times in a
/// row, since an upstream may err once.
///
/// An attempt that was refused for its credentials was not carried out: HTTP says so of status 401 (RFC 9110, 15.5.2), so
/// this holds for every tool. A refusal that other credentials do not change, such as status 403, says so by
/// [`ToolError::allows_retry`], and nothing is done about it.
///
/// # When a tool is on again
/// When its credentials have changed, which each call looks for; when the configuration is loaded again; when an
/// operator says so; or when a call that is let through after the tool's
/// [`disabled_for`](tool_core::Settings::disabled_for) is not refused. Observers are told of both as
/// [`AlertKind::Disabled`].
#[derive(Debug, Clone, Copy, Default)]
pub struct CredentialRefreshLayer;

/// The layer of [`CredentialRefreshLayer`].
#[derive(Debug, Clone)]
pub struct CredentialRefresh<S> {
    inner: S,
}

impl CredentialRefreshLayer {
    /// Switches a tool on again, and tells observers; false if it was not off.
    pub fn enable(tool: &Tool, why: &str, observers: &Observers, at: SystemTime) -> bool {
        let was_off = tool.state().enable();
        if was_off {
            let message = format!("`{}` is switched on again: {why}", tool.name());
            tell(tool, AlertPhase::Resolved, message, observers, at);
        }
        was_off
    }
}

fn tell(tool: &Tool, phase: AlertPhase, message: String, observers: &Observers, at: SystemTime) {
    let subject = AlertSubject::Tool(tool.name().clone());
    let alert = Alert::new(AlertKind::Disabled, phase, subject, message, at);
    observers.tell(&Event::Alert { alert: &alert });
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
            let_pass(cx, disabled).await?;
        }
        let mut result = self.inner.invoke(cx).await;
        if cx.is_dry_run() {
            return result;
        }
        let mut are_others_refused = false;
        if is_refused(&result) && !cx.origin.ask.as_ref().is_some_and(Asker::has_asked) {
            let tool = cx.tool().clone();
            if tool.executor().refresh_credentials_boxed(Refresh::Force).await {
                // Answers that were kept under the ones before are not those of these.
                tool.state().credentials_renewed();
                cx.explain("credentials", || "again, with others".to_owned());
                cx.next_attempt();
                result = self.inner.invoke(cx).await;
                are_others_refused = true;
            } else {
                cx.explain("credentials", || "refused, and there are no others".to_owned());
            }
        }
        let state = cx.tool().state();
        if is_refused(&result) {
            if state.refused() >= MOST_REFUSALS || are_others_refused || disabled.is_some() {
                switch_off(cx);
            }
        } else if result.is_ok() || cx.dispatch().state() == DispatchState::Answered {
            state.accepted();
            if disabled.is_some() {
                let why = "its credentials are not refused any more";
                CredentialRefreshLayer::enable(cx.tool(), why, &cx.observers, cx.clock.wall());
            }
        }
        result
    }
}

/// Whether a call of a tool that is off may try whether it works again.
async fn let_pass(cx: &mut CallContext, disabled: &Disabled) -> Result<(), ToolError> {
    let tool = cx.tool().clone();
    if tool.executor().refresh_credentials_boxed(Refresh::Peek).await {
        cx.explain("credentials", || "there are others than those refused".to_owned());
        return Ok(());
    }
    let (now, pause) = (cx.clock.now(), disabled_for(&tool));
    if !cx.is_dry_run() && tool.state().try_out(now, pause.max(MIN_PAUSE)) {
        cx.explain("credentials", || {
            "tries whether they are accepted again".to_owned()
        });
        return Ok(());
    }
    let left = disabled.until.since(now);
    let message = format!("`{}` is switched off: {}", tool.name(), disabled.reason);
    cx.explain("credentials", || message.clone());
    cx.emit_refused("credentials", "switched_off");
    Err(ToolError::new(ErrorKind::Auth, message)
        .with_no_retry()
        .with_retry_after(left))
}

/// How often in a row the same credentials are refused before the tool is switched off.
const MOST_REFUSALS: u32 = 3;
/// So that one call tries a tool out, and not all that come at once.
const MIN_PAUSE: Duration = Duration::from_secs(1);

/// Whether the credentials were refused, in a way that others may change.
fn is_refused(result: &Result<Outcome, ToolError>) -> bool {
    result
        .as_ref()
        .is_err_and(|error| error.kind() == ErrorKind::Auth && error.allows_retry())
}

/// Time for which the tool is switched off when its credentials are refused.
fn disabled_for(tool: &Tool) -> Duration {
    let settings = tool.settings().get::<CredentialSettings>();
    settings.copied().unwrap_or_default().disabled_for
}

fn switch_off(cx: &mut CallContext) {
    let tool = cx.tool().clone();
    let pause = disabled_for(&tool);
    if pause.is_zero() {
        return;
    }
    // Whoever calls is told by the table of errors what to do about it.
    let reason = "its credentials are refused";
    let is_new = tool.state().disable(Disabled {
        reason: reason.to_owned(),
        since: cx.clock.wall(),
        until: cx.clock.now() + pause,
    });
    cx.explain("credentials", || {
        format!("switched off for {}", format_duration(pause))
    });
    if is_new {
        let message = format!("`{}` is switched off: {reason} and must be renewed", tool.name());
        tell(&tool, AlertPhase::Firing, message, &cx.observers, cx.clock.wall());
    }
}
