use raw_json::RawJson;
use serde_json::json;
use toolplane::{MissingServer, core::SourceState, policy::text_for_caller};

/// The key of `_meta` under which a list names the servers whose entries are missing from it.
const MISSING: &str = "dev.toolplane/missing";

/// A page of a list with the servers that are missing from it, and why, if any are.
pub(crate) fn noted(page: RawJson, missing: &[MissingServer]) -> RawJson {
    if missing.is_empty() {
        return page;
    }
    let servers = missing.iter().map(|missing| {
        let mut server = json!({"server": missing.server, "state": missing.state.as_str()});
        if let SourceState::Failed(reason) = &missing.state {
            // The words of errors: operators see the whole reason in the log and in `servers ls`.
            server["reason"] = (*text_for_caller(reason)).into();
        }
        server
    });
    let servers = RawJson::from(serde_json::Value::from_iter(servers));
    page.with_members_in("_meta", &[(MISSING, servers)])
        .expect("a page is an object, and so is its `_meta`")
}
