//! Approvals of calls, as operators see and decide them.
//!
//! | request below `/approvals` | state of the approval | answer |
//! |---|---|---|
//! | `GET /` | | all approvals |
//! | `GET /HANDLE` | any | the approval |
//! | `POST /HANDLE/approve` | pending | the approval, approved |
//! | `POST /HANDLE/deny` | pending | the approval, denied |
//! | `POST /HANDLE/..` | decided | 409 `decided` |
//! | `POST /HANDLE/..` | pending, and the operator made the call | 409 `denied` |
//! | any | unknown | 404 `not_found` |

use http::{Method, StatusCode};
use raw_json::RawJson;
use toolplane::policy::{ApprovalDesk, ApprovalVerdict, DecideError, approval_json};

use super::response::{ApiResult, api_error, method_not_allowed};

/// Name of the approver if a request does not say who decides.
const DEFAULT_APPROVER: &str = "operator";

/// Answers a request with this path below `/approvals` and this body.
pub(super) async fn answer(desk: &ApprovalDesk, method: &Method, path: &[&str], body: RawJson) -> ApiResult {
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
            let text = |key: &str| body.get(key).and_then(|text| text.string());
            let verdict = match *verdict {
                "approve" => ApprovalVerdict::Approve,
                _ => ApprovalVerdict::Deny {
                    reason: text("reason").filter(|reason| !reason.is_empty()),
                },
            };
            let by = text("by").filter(|by| !by.is_empty());
            let by = by.as_deref().unwrap_or(DEFAULT_APPROVER);
            let decided = desk.decide(handle, verdict, by).await;
            Ok(approval_json(&decided.map_err(|error| failure(&error))?))
        }
        _ => Err(method_not_allowed()),
    }
}

fn failure(error: &DecideError) -> (StatusCode, RawJson) {
    let (status, kind) = match error {
        DecideError::Unknown { .. } => (StatusCode::NOT_FOUND, "not_found"),
        DecideError::Decided { .. } => (StatusCode::CONFLICT, "decided"),
        DecideError::OwnCall { .. } => (StatusCode::CONFLICT, "denied"),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
    };
    api_error(status, kind, &error.to_string())
}
