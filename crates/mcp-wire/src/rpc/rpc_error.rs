use raw_json::{JsonKind, RawJson};

/// Error of a JSON-RPC response, with its data as written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("error {code}: {message}")]
#[non_exhaustive]
pub struct RpcError {
    /// Kind of the error, see [`code`](mod@code).
    pub code: i64,
    /// Description of the error.
    pub message: String,
    /// Further data of the sender.
    pub data: Option<RawJson>,
    /// Members that JSON-RPC does not define, as written: at most 16, of 16 KiB in all.
    pub extra_members: Vec<(String, RawJson)>,
}

/// Maximum number of members that JSON-RPC does not define.
const MAX_EXTRA: usize = 16;
/// Maximum length of these members with their keys, in bytes.
const MAX_EXTRA_LEN: usize = 16 * 1024;

/// Codes of [`RpcError`]; the protocol's eras share one table.
pub mod code {
    /// The text is not JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// The JSON is not a message.
    pub const INVALID_REQUEST: i64 = -32600;
    /// The method does not exist, or is not offered.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The parameters do not fit the method; also an unknown tool.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The receiver failed.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// The resource does not exist (legacy; modern servers use [`INVALID_PARAMS`]).
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// A header contradicts the body (2026-07-28).
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The method needs a capability that the caller did not declare (2026-07-28).
    pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
    /// The server does not speak the revision (2026-07-28).
    pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;
    /// The user must visit a URL first (2025-11-25).
    pub const URL_ELICITATION_REQUIRED: i64 = -32042;
}

impl RpcError {
    /// Creates an error without data.
    #[must_use]
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
            extra_members: Vec::new(),
        }
    }

    /// Adds data.
    #[must_use]
    pub fn with_data(mut self, data: RawJson) -> Self {
        self.data = Some(data);
        self
    }

    /// Adds a member that JSON-RPC does not define, unless the limit is reached or the key is present.
    fn push_extra(&mut self, key: &str, member: RawJson) {
        let length: usize = self
            .extra_members
            .iter()
            .map(|(key, member)| key.len() + member.len())
            .sum();
        let has_room =
            self.extra_members.len() < MAX_EXTRA && length + key.len() + member.len() <= MAX_EXTRA_LEN;
        if has_room && self.extra_members.iter().all(|(known, _)| known != key) {
            self.extra_members.push((key.to_owned(), member));
        }
    }

    /// Reads the `error` member of a response. Real servers send malformed ones, so any value is accepted: a missing code
    /// becomes [`code::INTERNAL_ERROR`], a missing message the text of the value.
    #[must_use]
    pub fn from_raw(value: &RawJson) -> Self {
        let mut error = Self::new(code::INTERNAL_ERROR, "");
        let mut has_message = false;
        for (key, member) in value.members() {
            match &*key {
                "code" => error.code = signed(&member).unwrap_or(code::INTERNAL_ERROR),
                "message" => {
                    error.message = member.string().unwrap_or_else(|| short(member.as_str()));
                    has_message = true;
                }
                "data" => error.data = Some(member),
                key => error.push_extra(key, member),
            }
        }
        if !has_message {
            error.message = short(&value.string().unwrap_or_else(|| value.as_str().to_owned()));
        }
        error
    }
}

/// Reads a code, which some servers write as a string or a fraction.
fn signed(value: &RawJson) -> Option<i64> {
    if !matches!(value.kind(), JsonKind::Number | JsonKind::String) {
        return None;
    }
    let text = value.as_str().trim_matches('"');
    let double = || {
        text.parse::<f64>()
            .ok()
            .filter(|double| double.fract() == 0.0 && double.abs() < 1e15)
    };
    text.parse().ok().or_else(|| double().map(|double| double as i64))
}

fn short(text: &str) -> String {
    text.chars().take(256).collect()
}
