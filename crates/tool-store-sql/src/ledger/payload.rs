//! Replies and errors as the ledger stores them: all their fields, and the bytes of a reply as they are.

use std::{
    collections::BTreeSet,
    error::Error,
    fmt,
    sync::{Arc, LazyLock},
    time::Duration,
};

use parking_lot::Mutex;
use raw_json::{JsonLimits, RawJson};
use serde_json::{Value, json};
use tool_core::{Body, CallEnd, ErrorKind, LedgerState, Reply, ToolError};

use crate::{SqlError, codec};

/// Columns of the end of a call: the word of its state, the details, and the text of the reply.
pub(super) struct Payload {
    pub(super) state: &'static str,
    pub(super) detail: Option<String>,
    pub(super) reply: Option<String>,
}

/// Returns the columns of the end of a call; `None` if its entry is removed. A reply of more than `max_reply` bytes is left out.
pub(super) fn payload(end: &CallEnd, max_reply: usize) -> Option<Payload> {
    let without_reply = |state, detail| Payload {
        state,
        detail,
        reply: None,
    };
    Some(match end {
        CallEnd::Free => return None,
        CallEnd::Open => without_reply("open", None),
        CallEnd::Answered(Some(reply)) if reply.raw().len() <= max_reply => Payload {
            state: "answered",
            detail: Some(reply_detail(reply).to_string()),
            reply: Some(reply.raw().as_str().to_owned()),
        },
        CallEnd::Answered(_) => without_reply("answered", None),
        CallEnd::Failed(error) => without_reply("failed", Some(error_detail(error).to_string())),
        CallEnd::Unknown(error) => without_reply("unknown", Some(error_detail(error).to_string())),
    })
}

/// Reads the state of an entry.
pub(super) fn state(
    word: &str,
    detail: Option<&str>,
    reply: Option<String>,
) -> Result<LedgerState, SqlError> {
    let detail = || {
        let detail =
            detail.ok_or_else(|| SqlError::Corrupt("an entry of the ledger has no details".to_owned()))?;
        codec::json::<Value>(detail, "the details of an entry of the ledger")
    };
    Ok(match word {
        "running" => LedgerState::Running,
        "open" => LedgerState::Open,
        "answered" => LedgerState::Answered(match reply {
            Some(text) => Some(read_reply(text, &detail()?)?),
            None => None,
        }),
        "failed" => LedgerState::Failed(read_error(&detail()?)?),
        "unknown" => LedgerState::Unknown(read_error(&detail()?)?),
        other => {
            return Err(SqlError::Corrupt(format!(
                "unknown state `{}`",
                other.escape_debug()
            )));
        }
    })
}

fn reply_detail(reply: &Reply) -> Value {
    let meta: Vec<Value> = reply
        .meta()
        .iter()
        .map(|(key, value)| json!([key, value.as_str()]))
        .collect();
    json!({
        "is_result": matches!(reply.body, Body::Result(_)),
        "is_error": reply.is_error,
        "is_partial": reply.is_partial(),
        "meta": meta,
    })
}

fn read_reply(text: String, detail: &Value) -> Result<Reply, SqlError> {
    let is = |name: &str| detail[name].as_bool().unwrap_or_default();
    let raw = raw(text)?;
    let mut reply = match is("is_result") {
        true => Reply::result(raw, is("is_error")),
        false => Reply::value(raw),
    };
    reply.is_error = is("is_error");
    if is("is_partial") {
        reply.mark_partial();
    }
    for pair in detail["meta"].as_array().into_iter().flatten() {
        if let (Some(key), Some(value)) = (pair[0].as_str().and_then(meta_key), pair[1].as_str()) {
            reply.add_meta(key, self::raw(value.to_owned())?);
        }
    }
    Ok(reply)
}

fn raw(text: String) -> Result<RawJson, SqlError> {
    RawJson::parse_within(text, JsonLimits::RELAY)
        .map_err(|error| SqlError::Corrupt(format!("a stored reply is no JSON: {error}")))
}

/// Returns a key of `_meta` as layers write it. Layers have few keys; others are not invented by reading a database.
fn meta_key(key: &str) -> Option<&'static str> {
    const MAX_KEYS: usize = 256;
    static KEYS: LazyLock<Mutex<BTreeSet<&'static str>>> = LazyLock::new(Mutex::default);
    let mut keys = KEYS.lock();
    if let Some(known) = keys.get(key) {
        return Some(known);
    }
    if keys.len() >= MAX_KEYS {
        return None;
    }
    let key: &'static str = Box::leak(key.to_owned().into_boxed_str());
    keys.insert(key);
    Some(key)
}

fn error_detail(error: &ToolError) -> Value {
    let after = error
        .retry_after()
        .map(|after| json!([after.as_secs(), after.subsec_nanos()]));
    let plain = ToolError::new(error.kind(), "");
    let plain = if error.may_have_run() {
        plain.with_may_have_run()
    } else {
        plain
    };
    json!({
        "kind": error.kind().as_str(),
        "message": error.message(),
        "causes": causes(error),
        "retry_after": after,
        "allows_retry": error.allows_retry(),
        "counts_for_health": error.counts_for_health(),
        "may_have_run": error.may_have_run(),
        "detail": error.detail().map(RawJson::as_str),
        "ledger_id": error.ledger_id().map(|id| id.to_string()),
        "advice": Some(error.advice()).filter(|advice| *advice != plain.advice()),
        "log_message": error.log_message(),
    })
}

fn causes(error: &ToolError) -> Vec<String> {
    let mut causes = Vec::new();
    let mut cause = error.source();
    while let Some(present) = cause {
        causes.push(present.to_string());
        cause = present.source();
    }
    causes
}

fn read_error(detail: &Value) -> Result<ToolError, SqlError> {
    let text = |name: &str| detail[name].as_str();
    let kind = text("kind").and_then(ErrorKind::named).ok_or_else(|| {
        let kind = detail["kind"].to_string();
        SqlError::Corrupt(format!("unknown kind of error {kind}"))
    })?;
    let mut error = ToolError::new(kind, text("message").unwrap_or_default());
    let after = &detail["retry_after"];
    if let (Some(seconds), Some(nanos)) = (after[0].as_u64(), after[1].as_u64()) {
        let nanos = u32::try_from(nanos).unwrap_or_default();
        error = error.with_retry_after(
            Duration::from_secs(seconds).saturating_add(Duration::from_nanos(nanos.into())),
        );
    }
    if detail["allows_retry"] == false {
        error = error.with_no_retry();
    }
    if detail["counts_for_health"] == false {
        error = error.ignored_by_health();
    }
    if detail["may_have_run"] == true {
        error = error.with_may_have_run();
    }
    if let Some(data) = text("detail") {
        error = error.with_detail(raw(data.to_owned())?);
    }
    if let Some(id) = text("ledger_id").and_then(|id| id.parse().ok()) {
        error = error.with_ledger_id(id);
    }
    if let Some(advice) = text("advice") {
        error = error.with_advice(advice.into());
    }
    if let Some(message) = text("log_message") {
        error = error.with_log_message(message);
    }
    let causes = detail["causes"].as_array().into_iter().flatten();
    let causes: Vec<&str> = causes.filter_map(Value::as_str).collect();
    Ok(match StoredCause::chain(&causes) {
        Some(cause) => error.with_source(cause),
        None => error,
    })
}

/// Cause of a stored error: its text, and its own cause.
#[derive(Debug)]
struct StoredCause {
    message: String,
    source: Option<Arc<Self>>,
}

impl StoredCause {
    /// Returns the first of these causes, each caused by the next one.
    fn chain(causes: &[&str]) -> Option<Self> {
        let (first, rest) = causes.split_first()?;
        Some(Self {
            message: (*first).to_owned(),
            source: Self::chain(rest).map(Arc::new),
        })
    }
}

impl fmt::Display for StoredCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for StoredCause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
