use mcp_server::{RequestContext, StateSeal};
use mcp_wire::{Request, RpcError, code};
use raw_json::RawJson;
use serde::{Deserialize, Serialize};

/// State with which a modern client continues a call after a question: the content of `requestState`.
///
/// A seal protects it, so that a client cannot forge it, change it or use it for another request. Clients treat it as
/// opaque. Gateways with one key ([`GatewayOptions::state_key`](crate::GatewayOptions)) open the tokens of each other, also
/// after a restart; a parked call lives in one gateway only, and ends with it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ResumeToken {
    /// Number of a parked call.
    Parked(u64),
    /// State of the upstream, forwarded as it is.
    Upstream(RawJson),
    /// The user was asked to visit a page before the call is made again.
    PageVisit,
}

impl ResumeToken {
    /// Seals the token for the client of a request, which sends it with the next round of the same request.
    pub(super) fn seal(&self, seal: &StateSeal, request: &Request, cx: &RequestContext) -> String {
        let token = serde_json::to_string(self).expect("numbers and JSON can be written");
        seal.seal(&token, request, cx)
    }

    /// Opens the `requestState` of a request.
    pub(super) fn open(
        sealed: &str,
        seal: &StateSeal,
        request: &Request,
        cx: &RequestContext,
    ) -> Result<Self, RpcError> {
        let token = seal.open(sealed, request, cx)?;
        serde_json::from_str(&token)
            .map_err(|_| RpcError::new(code::INVALID_PARAMS, "unknown `requestState`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The state of an upstream keeps its bytes.
    #[test]
    fn tokens_survive_writing_and_reading() {
        for (text, is_expected) in [
            (r#"{"parked":7}"#, true),
            (r#"{"upstream":{ "n":1e2, "s":"\u00e9" }}"#, true),
            (r#"{"upstream":"parked 7"}"#, true),
            (r#""page_visit""#, true),
            ("parked 7", false),
            (r#"{"parked":-1}"#, false),
            (r#"{"other":1}"#, false),
        ] {
            let token = serde_json::from_str::<ResumeToken>(text).ok();
            let written = token.map(|token| serde_json::to_string(&token).expect("it can be written"));
            assert_eq!(written.as_deref(), is_expected.then_some(text), "{text}");
        }
    }
}
