//! Webhooks of a configuration, which receive alerts and approvals.

use std::sync::Arc;

use arc_swap::ArcSwap;
use raw_json::RawJson;
use tool_core::{ApprovalListener, ApprovalRecord, Clock, Event, Observe, rfc3339};
use tool_manifest::{Configuration, WebhookSpec};
use tool_observe::{Webhook, webhook};
use tool_policy::approval_json;

use crate::{
    BuildError,
    build::background::Background,
    outgoing::client::{Outbound, hook},
};

/// Webhooks of the current configuration.
pub(crate) struct Webhooks {
    present: Arc<ArcSwap<Present>>,
    outbound: Arc<Outbound>,
    clock: Arc<dyn Clock>,
    background: Arc<Background>,
}

/// Webhooks by the kind of their messages.
#[derive(Default)]
pub(crate) struct Present {
    alerts: Vec<Hook>,
    approvals: Vec<Hook>,
}

/// Webhook whose messages are sent in the background until it is dropped.
#[derive(Clone)]
struct Hook {
    spec: WebhookSpec,
    webhook: Arc<Webhook>,
}

/// Sends messages to the current webhooks.
struct WebhookSender {
    present: Arc<ArcSwap<Present>>,
    clock: Arc<dyn Clock>,
}

impl Webhooks {
    pub(crate) fn new(outbound: Arc<Outbound>, clock: Arc<dyn Clock>, background: Arc<Background>) -> Self {
        Self {
            present: Arc::default(),
            outbound,
            clock,
            background,
        }
    }

    /// Returns the client for outgoing requests.
    pub(crate) fn outbound(&self) -> &Arc<Outbound> {
        &self.outbound
    }

    /// Creates the webhooks of a configuration. An existing one is reused with its queued messages.
    ///
    /// # Errors
    /// In a build without outgoing requests.
    pub(crate) fn prepare(&self, configuration: &Configuration) -> Result<Present, BuildError> {
        let before = self.present.load();
        let alerts = configuration.alerts.webhook.iter();
        let approvals = configuration.policy.approval.callbacks.iter();
        Ok(Present {
            alerts: self.hooks(alerts, &before.alerts)?,
            approvals: self.hooks(approvals, &before.approvals)?,
        })
    }

    fn hooks<'a>(
        &self,
        specs: impl Iterator<Item = &'a WebhookSpec>,
        before: &[Hook],
    ) -> Result<Vec<Hook>, BuildError> {
        let known = |spec: &WebhookSpec| before.iter().find(|hook| hook.spec == *spec).cloned();
        specs
            .map(|spec| known(spec).map_or_else(|| self.hook(spec), Ok))
            .collect()
    }

    fn hook(&self, spec: &WebhookSpec) -> Result<Hook, BuildError> {
        let (webhook, work) = webhook(hook(self.outbound.clone(), spec)?, self.clock.clone());
        self.background.spawn(work);
        Ok(Hook {
            spec: spec.clone(),
            webhook: Arc::new(webhook),
        })
    }

    /// Replaces the current webhooks. Removed ones send their queued messages and end.
    pub(crate) fn reconfigure(&self, hooks: Present) {
        self.present.store(Arc::new(hooks));
    }

    /// Returns the observer that sends alerts.
    pub(crate) fn of_alerts(&self) -> Arc<dyn Observe> {
        Arc::new(self.teller())
    }

    /// Returns the listener that sends approvals.
    pub(crate) fn of_approvals(&self) -> Arc<dyn ApprovalListener> {
        Arc::new(self.teller())
    }

    fn teller(&self) -> WebhookSender {
        WebhookSender {
            present: self.present.clone(),
            clock: self.clock.clone(),
        }
    }
}

impl Observe for WebhookSender {
    fn observe(&self, event: &Event<'_>) {
        // Most events belong to calls and are skipped at once.
        if let Event::Alert { .. } = event {
            let present = self.present.load();
            present.alerts.iter().for_each(|hook| hook.webhook.observe(event));
        }
    }
}

impl ApprovalListener for WebhookSender {
    fn approval_changed(&self, approval: &ApprovalRecord) {
        let present = self.present.load();
        if present.approvals.is_empty() {
            return;
        }
        let message = RawJson::object().with_members(&[
            ("type", RawJson::from("toolplane.approval")),
            ("timestamp", RawJson::from(rfc3339(self.clock.wall()).as_str())),
            ("data", approval_json(approval)),
        ]);
        let message = message.expect("an empty object is an object");
        let what = format!("the approval `{}`", approval.handle);
        for hook in &present.approvals {
            hook.webhook.send(message.to_string(), what.clone());
        }
    }
}
