use std::sync::Arc;

use raw_json::RawJson;
use tool_core::{Approval, ApprovalNews, Clock, rfc3339};
use tool_observe::Webhook;
use tool_policy::approval_json;

/// Tells a webhook of approvals that are asked for or decided.
pub(crate) struct Callback {
    pub(crate) webhook: Webhook,
    pub(crate) clock: Arc<dyn Clock>,
}

impl ApprovalNews for Callback {
    fn told(&self, approval: &Approval) {
        let message = RawJson::object().with_members(&[
            ("type", RawJson::from("toolplane.approval")),
            ("timestamp", RawJson::from(rfc3339(self.clock.wall()).as_str())),
            ("data", approval_json(approval)),
        ]);
        let message = message.expect("an empty object is an object");
        let what = format!("the approval `{}`", approval.handle);
        self.webhook.send(message.to_string(), what);
    }
}
