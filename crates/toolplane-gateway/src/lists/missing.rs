use raw_json::RawJson;
use serde_json::json;
use toolplane::{MissingServer, core::SourceState, policy::text_for_caller};

/// Key in the `_meta` of a list that names the servers whose items are missing from it.
const MISSING: &str = "dev.toolplane/missing";

/// Adds the missing servers, with their states and reasons, to a page of a list. Returns the page unchanged if none is
/// missing.
pub(crate) fn add_missing_servers(page: RawJson, missing: &[MissingServer]) -> RawJson {
    if missing.is_empty() {
        return page;
    }
    let servers = missing.iter().map(|missing| {
        let mut server = json!({"server": missing.server, "state": missing.state.as_str()});
        if let SourceState::Failed(reason) = &missing.state {
            // Sanitized as errors are. Operators find the whole reason in the log and in `servers ls`.
            server["reason"] = (*text_for_caller(reason)).into();
        }
        server
    });
    let servers = RawJson::from(serde_json::Value::from_iter(servers));
    page.with_members_in("_meta", &[(MISSING, servers)])
        .expect("a page is an object, and so is its `_meta`")
}
