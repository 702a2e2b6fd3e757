use std::sync::Arc;

use mcp_client::RequestOptions;
use tool_core::CallContext;

/// Returns the options of a call's request. The layers above enforce the limit of the attempt; the client's timeout is
/// a safety net.
pub(crate) fn request_options(cx: &CallContext) -> RequestOptions {
    let limit = cx.remaining().unwrap_or(cx.tool().settings().call_timeout);
    let mut options = RequestOptions::with_timeout(limit);
    let sent = cx.dispatch().clone();
    options.on_sent = Some(Arc::new(move || sent.sent()));
    let answered = cx.dispatch().clone();
    options.on_answered = Some(Arc::new(move || answered.answered()));
    if let Some(progress) = cx.origin.progress.clone() {
        options.on_progress = Some(Arc::new(move |report| progress.report(report)));
    }
    if let Some(ask) = &cx.origin.ask {
        options.capabilities = Some(ask.client().capabilities());
        options.log_level = ask.client().log_level();
    }
    options
}
