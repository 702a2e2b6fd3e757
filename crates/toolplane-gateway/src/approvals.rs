//! Calls that wait for somebody's approval, as operators decide on them.

use http::{Method, StatusCode};
use raw_json::RawJson;
use toolplane::policy::{ApprovalDesk, ApprovalVerdict, DecideError, approval_json};

use crate::operator::{Answered, fault, no_such_method};

/// Who decided, where a decision does not say.
const SOMEBODY: &str = "operator";

/// Answers a request for what is at this path below `/approvals`, which says this.
pub(crate) async fn answer(desk: &ApprovalDesk, method: &Method, path: &[&str], said: RawJson) -> Answered {
    match (method, path) {
        (&Method::GET, []) => {
            let all = desk.list().await.map_err(|error| failure(&error.into()))?;
            let all: Vec<RawJson> = all.iter().map(approval_json).collect();
            let all = RawJson::from_serialize(&all).expect("JSON can be written");
            Ok(RawJson::from_members(&[("approvals", all)]))
        }
        (&Method::GET, [handle]) => {
            let found = desk.get(handle).await.map_err(|error| failure(&error))?;
            Ok(approval_json(&found))
        }
        (&Method::POST, [handle, verdict @ ("approve" | "deny")]) => {
            let text = |key: &str| said.get(key).and_then(|text| text.string());
            let verdict = match *verdict {
                "approve" => ApprovalVerdict::Approve,
                _ => ApprovalVerdict::Deny {
                    reason: text("reason").filter(|reason| !reason.is_empty()),
                },
            };
            let by = text("by").filter(|by| !by.is_empty());
            let by = by.as_deref().unwrap_or(SOMEBODY);
            let decided = desk.decide(handle, verdict, by).await;
            Ok(approval_json(&decided.map_err(|error| failure(&error))?))
        }
        _ => Err(no_such_method()),
    }
}

fn failure(error: &DecideError) -> (StatusCode, RawJson) {
    let (status, kind) = match error {
        DecideError::Unknown { .. } => (StatusCode::NOT_FOUND, "not_found"),
        DecideError::Decided { .. } => (StatusCode::CONFLICT, "decided"),
        DecideError::OwnCall { .. } => (StatusCode::CONFLICT, "denied"),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
    };
    fault(status, kind, &error.to_string())
}
